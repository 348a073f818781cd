"""The picture of a rule evaluation: what was measured over the steps, with its threshold, as one SVG file."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smdebug.rules.watched_quantity import WatchedQuantity

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 76, 14, 30, 34
_LINE, _LIMIT, _FIRED = "#1f5fa8", "#c0392b", "#c0392b"
_STYLE = "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.l{fill:#c0392b}"
# Values further apart than this, all above 0, are drawn on a logarithmic scale.
_LOGARITHMIC_FROM = 1000.0
_MOST_DRAWN = 800
# Numbers beyond are drawn here: the distance of two of them is still a number.
_FURTHEST = 1e300
_TICKS = 4


def draw_plot(title: str, quantities: Sequence[WatchedQuantity], fired_at: int | None) -> str:
    """One panel a quantity: its line, its threshold (dashed), and a dot where it made the rule fire.

    Args:
        title: stands above.
        quantities: what was measured.
        fired_at: the global step at which the rule fired; None if it did not.
    """
    height = _TOP + _PANEL * len(quantities)
    parts = [f'<text class="t" x="{_LEFT}" y="18">{escape(title)}</text>']
    guilty = [quantity for quantity in quantities if fired_at is not None and quantity.fires_at(fired_at)]
    for number, quantity in enumerate(quantities):
        # Where no threshold says which of them it was, the step is shown in all.
        is_guilty = not guilty or quantity in guilty
        parts += _draw_panel(quantity, _TOP + number * _PANEL, fired_at if is_guilty else None)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">\n'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _draw_panel(quantity: WatchedQuantity, top: int, fired_at: int | None) -> list[str]:
    points = [
        (step, _bound(value))
        for step, value in zip(quantity.steps, quantity.values, strict=True)
        if math.isfinite(value)
    ]
    every = -(-len(points) // _MOST_DRAWN) or 1
    drawn = [point for at, point in enumerate(points) if at % every == 0 or point[0] == fired_at]
    limit = quantity.threshold if quantity.threshold is not None and math.isfinite(quantity.threshold) else None
    limits = [] if limit is None else [_bound(limit)]
    values = [value for _, value in drawn] + limits
    across = _Scale([step for step, _ in drawn], _LEFT, _WIDTH - _RIGHT, logarithmic=False)
    bottom = top + _PANEL - _BOTTOM
    up = _Scale(values, bottom, top + 22, logarithmic=_spans_decades(values))
    parts = [
        f'<text x="{_LEFT}" y="{top + 12}">{escape(quantity.name)}; fires {quantity.fires} the threshold</text>',
        f'<path d="M{_LEFT} {top + 20}V{bottom}H{_WIDTH - _RIGHT}" fill="none" stroke="#666"/>',
        f'<text x="{_WIDTH - _RIGHT}" y="{bottom + 30}" text-anchor="end">global step</text>',
    ]
    for value in up.ticks():
        y = up.place(value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts += [
        f'<text x="{across.place(value):.1f}" y="{bottom + 16}" text-anchor="middle">{int(value)}</text>'
        for value in across.ticks()
        if value == int(value)
    ]
    for bounded in limits:
        y = up.place(bounded)
        parts.append(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_LIMIT}" stroke-dasharray="6 4" fill="none"/>'
        )
        # At the end where the line is further away from it, and within the panel.
        is_left = bool(drawn) and abs(up.place(drawn[0][1]) - y) > abs(up.place(drawn[-1][1]) - y)
        x, anchor = (_LEFT + 6, "start") if is_left else (_WIDTH - _RIGHT, "end")
        text_y = y - 4 if y - 16 > top + 22 else y + 14
        parts.append(f'<text class="l" x="{x}" y="{text_y:.1f}" text-anchor="{anchor}">threshold {limit:g}</text>')
    line = " ".join(f"{across.place(step):.1f},{up.place(value):.1f}" for step, value in drawn)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_LINE}" stroke-width="1.8"/>')
    parts += [
        f'<circle cx="{across.place(step):.1f}" cy="{up.place(value):.1f}" r="{5 if step == fired_at else 2}" '
        f'fill="{_FIRED if step == fired_at else _LINE}"/>'
        for step, value in drawn
        if step == fired_at or len(drawn) <= 60
    ]
    return parts


def _bound(value: float) -> float:
    return max(-_FURTHEST, min(_FURTHEST, value))


def _spans_decades(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOGARITHMIC_FROM


class _Scale:
    """Values to places between two ends of the picture."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, logarithmic: bool) -> None:
        self._logarithmic = logarithmic
        seen = [math.log10(value) if logarithmic else value for value in values] or [0.0, 1.0]
        low, high = min(seen), max(seen)
        if high - low < 1 / _FURTHEST:
            # A half more or less is nothing to a large number.
            margin = max(0.5, abs(low) / 1e9)
            low, high = low - margin, high + margin
        self._low, self._high = low, high
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        at = math.log10(value) if self._logarithmic else value
        return self._start + (self._end - self._start) * ((at - self._low) / (self._high - self._low))

    def ticks(self) -> list[float]:
        """Round values between both ends."""
        apart = (self._high - self._low) / _TICKS
        step = math.ceil(apart) if self._logarithmic else _round_up(apart)
        first = math.ceil(self._low / step - 1e-9)
        last = math.floor(self._high / step + 1e-9)
        found = [number * step for number in range(first, last + 1)]
        return [10.0**value for value in found] if self._logarithmic else found


def _round_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))
