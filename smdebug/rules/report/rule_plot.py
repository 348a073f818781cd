"""The picture of a rule evaluation: what was measured over the steps, with its threshold, as one SVG file."""

import math
import textwrap
from collections.abc import Sequence
from html import escape

from smdebug.rules.drawing.svg import FURTHEST, Scale, element, polyline
from smdebug.rules.rule import Finding
from smdebug.rules.watched_quantity import WatchedQuantity

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 76, 14, 30, 34
_LINE, _LIMIT, _FIRED = "#1f5fa8", "#c0392b", "#c0392b"
_STYLE = "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.l{fill:#c0392b}"
# What is written over lines has a border of the page's colour.
_STYLE += ".v{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px}"
# Values further apart than this, all above 0, are drawn on a logarithmic scale.
_LOGARITHMIC_FROM = 1000.0
_MOST_DRAWN = 800
# Of the finding that stands below the title, and of the name of its tensor.
_MARGIN, _LINE_HEIGHT, _CHARACTERS, _MOST_LINES, _LONGEST_NAME = 14, 16, 96, 4, 28


def draw_plot(
    title: str, quantities: Sequence[WatchedQuantity], fired_at: int | None, finding: Finding | None = None
) -> str:
    """One panel a quantity: its line, its threshold (dashed), and a dot where it made the rule fire.

    Args:
        title: stands above.
        quantities: what was measured.
        fired_at: the global step at which the rule fired; None if it did not.
        finding: what the rule found there; it stands below the title, and its tensor beside the dot.
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
        # Where no threshold says which of them it was, the step is shown in all.
        is_guilty = not guilty or quantity in guilty
        parts += _draw_panel(quantity, top + number * _PANEL, fired_at if is_guilty else None)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">\n'
        f"<title>{escape(title)}</title>"
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
    # One value alone is a bar from 0.
    is_single = len(drawn) == 1
    values = [value for _, value in drawn] + limits + [0.0] * is_single
    across = Scale([step for step, _ in drawn], _LEFT, _WIDTH - _RIGHT)
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
        # At the end where the line is further away from it, and within the panel.
        is_left = bool(drawn) and abs(up.place(drawn[0][1]) - y) > abs(up.place(drawn[-1][1]) - y)
        x, anchor = (_LEFT + 6, "start") if is_left else (right, "end")
        text_y = y - 4 if y - 16 > top + 22 else y + 14
        parts.append(element("text", f"threshold {limit:g}", class_="l", x=x, y=text_y, text_anchor=anchor))
    places = [(across.place(step), up.place(value)) for step, value in drawn]
    if is_single:
        ((middle, edge),) = places
        begin, end = sorted((up.place(0.0), edge))
        bar = element("rect", x=middle - 14, y=begin, width=28, height=end - begin, fill=_LINE, fill_opacity=".35")
        parts.append(bar)
    parts.append(polyline(places, _LINE, 1.8))
    parts += [
        element("circle", cx=x, cy=y, r=5 if step == fired_at else 2, fill=_FIRED if step == fired_at else _LINE)
        for (step, _), (x, y) in zip(drawn, places, strict=True)
        if step == fired_at or (len(drawn) <= 60 and not is_single)
    ]
    named = [at for at, (step, _) in enumerate(drawn) if step == fired_at or is_single]
    return parts + [_name_point(quantity, *drawn[at], *places[at], top) for at in named]


def _name_point(quantity: WatchedQuantity, step: int, value: float, x: float, y: float, top: int) -> str:
    """Write the value of a point and its tensor beside it, within the panel."""
    tensor = quantity.tensors[quantity.steps.index(step)]
    name = tensor if len(tensor) <= _LONGEST_NAME else f"{tensor[:12]}…{tensor[13 - _LONGEST_NAME :]}"
    is_right = x > (_LEFT + _WIDTH) / 2
    return element(
        "text",
        f"{value:.4g} {name}".rstrip(),
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
