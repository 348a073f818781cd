"""SVG plot of a rule evaluation: measured values and threshold over steps."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from smdebug.analysis.line_styles import LineStyle, choose_style
from smdebug.mode_keys import ModeKeys
from smdebug.rules.drawing.svg import FURTHEST, Scale, element, polyline
from smdebug.rules.rule import Finding
from smdebug.rules.watched_quantity import WatchedQuantity

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 76, 14, 30, 34
_LIMIT, _FIRED = "#c0392b", "#c0392b"
_STYLE = "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.l{fill:#c0392b}"
# Text drawn over lines has an outline in the page's colour.
_STYLE += ".v{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px}"
# Values that are all above 0 and differ by more than this factor are drawn on a logarithmic scale.
_LOGARITHMIC_FROM = 1000.0
_MOST_DRAWN, _MOST_DOTS = 800, 60
_STROKE, _LEGEND_WIDTH = 1.8, 92
# Maximum lengths of the finding below the title, and of the name of its tensor.
_MARGIN, _LINE_HEIGHT, _CHARACTERS, _MOST_LINES, _LONGEST_NAME = 14, 16, 96, 4, 28


class _Point(NamedTuple):
    step: int
    value: float
    mode: str | None


def draw_plot(
    title: str, quantities: Sequence[WatchedQuantity], fired_at: int | None, finding: Finding | None = None
) -> str:
    """Draw one panel per quantity: a line for each mode, the threshold (dashed), and a dot where the rule fired.

    Args:
        title: the heading of the plot.
        quantities: the measured quantities.
        fired_at: the global step at which the rule fired; None if it did not.
        finding: the finding at that step; it is shown below the title, and its tensor beside the dot.
    """
    lines = [] if finding is None else _wrap(str(finding))
    top = _TOP + _LINE_HEIGHT * len(lines)
    height = top + _PANEL * len(quantities)
    parts = [element("text", title, class_="t", x=_MARGIN, y=18)]
    parts += [
        element("text", line, x=_MARGIN, y=18 + _LINE_HEIGHT * number) for number, line in enumerate(lines, start=1)
    ]
    guilty = [quantity for quantity in quantities if fired_at is not None and quantity.fires_at(fired_at)]
    for number, quantity in enumerate(quantities):
        # If no threshold says which quantity made the rule fire, the step is marked in all panels.
        is_guilty = not guilty or quantity in guilty
        parts += _draw_panel(quantity, top + number * _PANEL, fired_at if is_guilty else None)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">\n'
        f"<title>{escape(title)}</title>"
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _draw_panel(quantity: WatchedQuantity, top: int, fired_at: int | None) -> list[str]:
    points = [
        _Point(step, _bound(value), mode)
        for step, value, mode in zip(quantity.steps, quantity.values, quantity.modes, strict=True)
        if math.isfinite(value)
    ]
    # Each mode is thinned separately: otherwise a mode of every tenth step would be lost among the others.
    drawn = sorted(
        (point for of_mode in _split(points).values() for point in _thin(of_mode, fired_at)),
        key=lambda point: point.step,
    )
    limit = quantity.threshold if quantity.threshold is not None and math.isfinite(quantity.threshold) else None
    limits = [] if limit is None else [_bound(limit)]
    # A single value is drawn as a bar from 0.
    is_single = len(drawn) == 1
    values = [point.value for point in drawn] + limits + [0.0] * is_single
    across = Scale([point.step for point in drawn], _LEFT, _WIDTH - _RIGHT)
    bottom = top + _PANEL - _BOTTOM
    up = Scale(values, bottom, top + 22, logarithmic=not is_single and _spans_decades(values))
    right = _WIDTH - _RIGHT
    fires = "there is no threshold" if limit is None else f"fires {quantity.fires} the threshold"
    parts = [
        element("text", f"{quantity.name}; {fires}", x=_LEFT, y=top + 12),
        element("path", d=f"M{_LEFT} {top + 20}V{bottom}H{right}", fill="none", stroke="#666"),
        element("text", "global step", x=right, y=bottom + 30, text_anchor="end"),
    ]
    for value in up.ticks():
        y = up.place(value)
        parts.append(element("path", d=f"M{_LEFT} {y:.1f}H{right}", stroke="#e4e4e4"))
        parts.append(element("text", f"{value:.3g}", x=_LEFT - 6, y=y + 4, text_anchor="end"))
    parts += [
        element("text", str(int(value)), x=across.place(value), y=bottom + 16, text_anchor="middle")
        for value in across.ticks()
        if value == int(value)
    ]
    for bounded in limits:
        y = up.place(bounded)
        parts.append(element("path", d=f"M{_LEFT} {y:.1f}H{right}", stroke=_LIMIT, stroke_dasharray="6 4", fill="none"))
        # At the end where the line is further away, and within the panel.
        is_left = bool(drawn) and abs(up.place(drawn[0].value) - y) > abs(up.place(drawn[-1].value) - y)
        x, anchor = (_LEFT + 6, "start") if is_left else (right, "end")
        text_y = y - 4 if y - 16 > top + 22 else y + 14
        parts.append(element("text", f"threshold {limit:g}", class_="l", x=x, y=text_y, text_anchor=anchor))
    if is_single:
        (point,) = drawn
        middle, (begin, end) = across.place(point.step), sorted((up.place(0.0), up.place(point.value)))
        colour = _choose_style(point.mode).colour
        bar = element("rect", x=middle - 14, y=begin, width=28, height=end - begin, fill=colour, fill_opacity=".35")
        parts.append(bar)
    lines = _split(drawn)
    for mode, line in lines.items():
        parts += _draw_line(line, mode, across, up)
    if len(lines) > 1:
        parts += _draw_legend(list(lines), right, top + 12)
    named = [point for point in drawn if point.step == fired_at or is_single]
    parts += [
        element("circle", cx=across.place(point.step), cy=up.place(point.value), r=5, fill=_FIRED)
        for point in named
        if point.step == fired_at
    ]
    return parts + [
        _name_point(quantity, point, across.place(point.step), up.place(point.value), top) for point in named
    ]


def _split(points: Iterable[_Point]) -> dict[str | None, list[_Point]]:
    lines: dict[str | None, list[_Point]] = {}
    for point in points:
        lines.setdefault(point.mode, []).append(point)
    return dict(sorted(lines.items(), key=lambda line: _find_mode(line[0]).value))


def _thin(points: Sequence[_Point], fired_at: int | None) -> list[_Point]:
    every = -(-len(points) // _MOST_DRAWN) or 1
    return [point for at, point in enumerate(points) if at % every == 0 or point.step == fired_at]


def _draw_line(line: Sequence[_Point], mode: str | None, across: Scale, up: Scale) -> list[str]:
    style = _choose_style(mode)
    places = [(across.place(point.step), up.place(point.value)) for point in line]
    dots = places if 1 < len(places) <= _MOST_DOTS else ()
    return [
        polyline(places, style.colour, _STROKE, **_write_dashes(style)),
        *(element("circle", cx=x, cy=y, r=2, fill=style.colour) for x, y in dots),
    ]


def _draw_legend(modes: Sequence[str | None], right: float, y: float) -> list[str]:
    """Draw the name of each mode with a sample of its line, side by side, up to the right edge."""
    parts = []
    for place, mode in enumerate(reversed(modes)):
        x, style = right - place * _LEGEND_WIDTH, _choose_style(mode)
        parts.append(polyline([(x - 82, y - 4), (x - 58, y - 4)], style.colour, _STROKE, **_write_dashes(style)))
        parts.append(element("text", mode or "no mode", x=x - 54, y=y))
    return parts


def _choose_style(mode: str | None) -> LineStyle:
    return choose_style(_find_mode(mode))


def _find_mode(name: str | None) -> ModeKeys:
    return ModeKeys.GLOBAL if name is None else ModeKeys[name]


def _write_dashes(style: LineStyle) -> dict[str, str]:
    lengths = " ".join(f"{length * _STROKE:g}" for length in style.dashes)
    return {"stroke_dasharray": lengths} if lengths else {}


def _name_point(quantity: WatchedQuantity, point: _Point, x: float, y: float, top: int) -> str:
    """Write the value of a point and its tensor beside it, within the panel."""
    tensor = quantity.tensors[quantity.steps.index(point.step)]
    name = tensor if len(tensor) <= _LONGEST_NAME else f"{tensor[:12]}…{tensor[13 - _LONGEST_NAME :]}"
    is_right = x > (_LEFT + _WIDTH) / 2
    return element(
        "text",
        f"{point.value:.4g} {name}".rstrip(),
        class_="v",
        x=x + (-18 if is_right else 18),
        y=min(max(y + 4, top + 34.0), top + _PANEL - _BOTTOM - 6.0),
        text_anchor="end" if is_right else "start",
    )


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _CHARACTERS, max_lines=_MOST_LINES, placeholder=" …", break_on_hyphens=False)


def _bound(value: float) -> float:
    return max(-FURTHEST, min(FURTHEST, value))


def _spans_decades(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= _LOGARITHMIC_FROM
