"""SVG elements, and scales that map numbers to coordinates."""

import math
from collections.abc import Iterable, Sequence
from html import escape

# Numbers beyond this limit are drawn at the limit, so that the distance between two numbers remains finite.
FURTHEST = 1e300
_TICKS = 4


def element(tag: str, content: str | None = None, **attributes: str | float) -> str:
    """Return an SVG element; coordinates are rounded to a tenth of a pixel.

    >>> element("text", "a < b", x=1, y=2.25, text_anchor="end")
    '<text x="1" y="2.2" text-anchor="end">a &lt; b</text>'

    Args:
        tag: name of the element.
        content: text of the element; None for an element without content.
        attributes: attributes, with an underscore for each hyphen, and `class_` for class.
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{value:.1f}"'
        if isinstance(value, float)
        else f' {name.rstrip("_").replace("_", "-")}="{value}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{given}/>" if content is None else f"<{tag}{given}>{escape(content)}</{tag}>"


def polyline(points: Iterable[tuple[float, float]], colour: str, width: float, **attributes: str) -> str:
    """Return a line through points of the picture."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=path, fill="none", stroke=colour, stroke_width=width, **attributes)


class Scale:
    """Maps values to coordinates between two positions of the picture.

    Args:
        values: values that the scale covers.
        start: coordinate of the lowest value.
        end: coordinate of the highest value.
        logarithmic: whether the scale is logarithmic; all values have to be above 0 then.
    """

    def __init__(self, values: Sequence[float], start: float, end: float, *, logarithmic: bool = False) -> None:
        self._logarithmic = logarithmic
        seen = [math.log10(value) if logarithmic else value for value in values] or [0.0, 1.0]
        low, high = min(seen), max(seen)
        if high - low < 1 / FURTHEST:
            # For a large number, the margin has to grow with the number: adding 0.5 would not change it.
            margin = max(0.5, abs(low) / 1e9)
            low, high = low - margin, high + margin
        self._low, self._high = low, high
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        """Return the coordinate of a value."""
        at = math.log10(value) if self._logarithmic else value
        return self._start + (self._end - self._start) * ((at - self._low) / (self._high - self._low))

    def ticks(self) -> list[float]:
        """Return the round values between both ends of the scale."""
        apart = (self._high - self._low) / _TICKS
        step = math.ceil(apart) if self._logarithmic else _round_up(apart)
        first = math.ceil(self._low / step - 1e-9)
        last = math.floor(self._high / step + 1e-9)
        found = [number * step for number in range(first, last + 1)]
        return [10.0**value for value in found] if self._logarithmic else found


def _round_up(value: float) -> float:
    """Round a value up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))
