"""Self-contained HTML pages of charts and tables.

Pages use inline SVG and CSS, and need neither network access nor scripts.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from smdebug.rules.drawing.svg import Scale, element, polyline

_WIDTH, _HEIGHT, _MARGIN = 560, 300, 68
_LEGEND, _BINS = 200, 30
# Half the width of the area of a pie chart.
_PIE = 90
_COLOURS = (
    "#1f5fa8",
    "#c2571a",
    "#2c7a43",
    "#8b3a8f",
    "#7a6a1c",
    "#5a5a5a",
    "#0e7c86",
    "#b3245a",
    "#6a8f00",
    "#4b3fb5",
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #ccc; margin-top: 2.2rem; }
table { border-collapse: collapse; }
td, th { overflow-wrap: break-word; }
td, th { border: 1px solid #ccc; padding: .25rem .6rem; text-align: left; vertical-align: top; }
details { margin: .6rem 0; } summary { cursor: pointer; }
.number, .matrix td, .matrix tr + tr th { text-align: right; font-variant-numeric: tabular-nums; }
th { background: #f3f3f3; } svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; }
"""


def render_page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """Return the page; each section is a pair (heading, HTML)."""
    body = "\n".join(f"<h2>{escape(heading)}</h2>\n{content}" for heading, content in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def render_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; numbers have up to six digits and are aligned to the right, and text is aligned to the left."""
    numeric = [bool(rows) and all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(head))]
    cells = "".join(_render_cell("th", each, is_number=number) for each, number in zip(head, numeric, strict=True))
    lines = "".join(
        f"<tr>{''.join(_render_cell('td', each, is_number=isinstance(each, (int, float))) for each in row)}</tr>"
        for row in rows
    )
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _render_cell(tag: str, value: object, *, is_number: bool) -> str:
    kind = ' class="number"' if is_number else ""
    return f"<{tag}{kind}>{escape(_format(value))}</{tag}>"


def render_text(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>\n"


def render_details(title: str, content: str) -> str:
    """Return HTML that is collapsed under a title until the reader expands it."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>\n"


def render_matrix(rows: Sequence[Sequence[int]], row_name: str, column_name: str) -> str:
    """Return a table of counts, in which a cell is darker if it is a larger share of its row."""
    # The names are above and beside the numbers, not in each cell, so that ten classes fit into the page.
    heads = "".join(f"<th>{number}</th>" for number in range(len(rows)))
    lines = []
    for number, row in enumerate(rows):
        total = sum(row) or 1
        cells = "".join(f'<td style="{_shade(count / total)}">{count}</td>' for count in row)
        lines.append(f"<tr><th>{number}</th>{cells}</tr>")
    top = f'<tr><th></th><th colspan="{len(rows)}">{escape(column_name)}</th></tr>'
    return f'<table class="matrix">{top}<tr><th>{escape(row_name)}</th>{heads}</tr>{"".join(lines)}</table>'


def _shade(share: float) -> str:
    """Return the CSS of a background between white for 0 and the first colour for 1, with a readable text colour."""
    red, green, blue = (round(255 - share * (255 - int(_COLOURS[0][at : at + 2], 16))) for at in (1, 3, 5))
    return f"background:#{red:02x}{green:02x}{blue:02x};color:{'#fff' if share > 0.5 else '#1c1c1c'}"


def render_lines(series: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Return a chart with one line per series of points (x, y), and a legend; non-finite points are omitted."""
    finite = {
        name: [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])] for name, points in series.items()
    }
    axes = _Axes([point for points in finite.values() for point in points])
    parts = [axes.frame(x_label, y_label)]
    for number, (name, points) in enumerate(finite.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        # When the colours repeat, the line is dashed.
        dashes = {"stroke_dasharray": "5 3"} if number >= len(_COLOURS) else {}
        places = [(axes.x.place(x), axes.y.place(y)) for x, y in points]
        parts.append(polyline(places, colour, 2, **dashes))
        if len(points) == 1:
            # A single point has no line.
            parts.append(element("circle", cx=places[0][0], cy=places[0][1], r=3, fill=colour))
        beside, y = _WIDTH + 12, 20 + 17 * number
        parts.append(element("path", d=f"M{beside} {y - 4}h20", stroke=colour, stroke_width=3, **dashes))
        parts.append(element("text", name, x=beside + 26, y=y))
    return _svg(parts, max(_HEIGHT, 24 + 17 * len(finite)), _WIDTH + _LEGEND)


def render_histogram(values: NDArray[np.float64], x_label: str) -> str:
    """Return a histogram of finite numbers with thirty bins of equal width."""
    counts, edges = np.histogram(values, bins=_BINS)
    axes = _Axes([(float(edges[0]), 0.0), (float(edges[-1]), float(counts.max()))])
    bottom = axes.y.place(0.0)
    parts = [axes.frame(x_label, "samples")]
    for count, low, high in zip(counts.tolist(), edges.tolist(), edges[1:].tolist(), strict=False):
        left, right, top = axes.x.place(low), axes.x.place(high), axes.y.place(float(count))
        parts.append(
            element("rect", x=left, y=top, width=right - left, height=bottom - top, fill=_COLOURS[0], stroke="#fff")
        )
    return _svg(parts)


def render_bars(values: Mapping[str, float]) -> str:
    """Return a chart of horizontal bars, one per name, in the given order (longest first)."""
    longest = max((abs(value) for value in values.values() if math.isfinite(value)), default=0.0) or 1.0
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top = 8 + 24 * number
        width = (_WIDTH - 260) * abs(value) / longest if math.isfinite(value) else 0
        parts.append(element("text", name, x=150, y=top + 14, text_anchor="end"))
        parts.append(element("rect", x=158, y=top, width=float(width), height=18, fill=_COLOURS[0]))
        parts.append(element("text", _format(value), x=164.0 + width, y=top + 14))
    return _svg(parts, 16 + 24 * len(values))


def render_pie(values: Mapping[str, float], title: str) -> str:
    """Return a pie chart that shows each number's share of the sum, with the names beside it."""
    total = sum(values.values())
    parts = [element("text", title, x=8, y=16, font_weight="bold")]
    at = 0.0
    for number, (name, value) in enumerate(values.items()):
        share = value / total if total > 0 else 0.0
        colour = _COLOURS[number % len(_COLOURS)]
        if share >= 1:
            parts.append(element("circle", cx=_PIE, cy=_PIE + 24, r=_PIE - 8, fill=colour))
        elif share > 0:
            ends = [
                (_PIE + (_PIE - 8) * math.sin(math.tau * part), _PIE + 24 - (_PIE - 8) * math.cos(math.tau * part))
                for part in (at, at + share)
            ]
            (x, y), (end_x, end_y) = ends
            large = int(share > 0.5)
            arc = f"A{_PIE - 8} {_PIE - 8} 0 {large} 1 {end_x:.1f} {end_y:.1f}Z"
            parts.append(element("path", d=f"M{_PIE} {_PIE + 24}L{x:.1f} {y:.1f}{arc}", fill=colour, stroke="#fff"))
        at += share
        beside, line = 2 * _PIE + 14, 40 + 18 * number
        parts.append(element("rect", x=beside, y=line - 10, width=12, height=12, fill=colour))
        parts.append(element("text", f"{name}: {100 * share:.3g} %", x=beside + 18, y=line))
    return _svg(parts, max(2 * _PIE + 30, 48 + 18 * len(values)), 2 * _PIE + 260)


def render_boxes(boxes: Mapping[str, Sequence[float]], y_label: str) -> str:
    """Return a box plot: whiskers from the 5th to the 95th percentile, a box from p25 to p75, and a line at p50.

    Args:
        boxes: the five percentiles of each name, in ascending order.
        y_label: label of the y axis, which goes from 0 to 100 percent.
    """
    width = max(_WIDTH, 2 * _MARGIN + 72 * len(boxes))
    scale = Scale([0.0, 100.0], _HEIGHT - _MARGIN, 10)
    parts = [element("path", d=f"M{_MARGIN} 10V{_HEIGHT - _MARGIN}H{width - 10}", fill="none", stroke="#444")]
    parts += _label_y_axis(scale, y_label)
    for number, (name, percentiles) in enumerate(boxes.items()):
        middle = _MARGIN + 40 + 72 * number
        p5, p25, p50, p75, p95 = (scale.place(min(max(value, 0.0), 100.0)) for value in percentiles)
        parts.append(element("path", d=f"M{middle} {p5:.1f}V{p95:.1f}", stroke="#444"))
        height = max(p25 - p75, 1.0)
        parts.append(element("rect", x=middle - 18, y=p75, width=36, height=height, fill="#cfe0f2", stroke="#1f5fa8"))
        parts.append(element("path", d=f"M{middle - 18} {p50:.1f}h36", stroke="#c2571a", stroke_width=2))
        where = f"rotate(20 {middle} {_HEIGHT - _MARGIN + 16})"
        label = element("text", name, x=middle - 14, y=_HEIGHT - _MARGIN + 16, transform=where)
        parts.append(label)
    return _svg(parts, width=width)


class _Axes:
    """Axes that cover all given points."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self.x = Scale([x for x, _ in points], _MARGIN, _WIDTH - 10)
        self.y = Scale([y for _, y in points], _HEIGHT - _MARGIN, 10)

    def frame(self, x_label: str, y_label: str) -> str:
        bottom = _HEIGHT - _MARGIN
        parts = [element("path", d=f"M{_MARGIN} 10V{bottom}H{_WIDTH - 10}", fill="none", stroke="#444")]
        for x in self.x.ticks():
            parts += [element("text", _format(x), x=self.x.place(x), y=bottom + 18, text_anchor="middle")]
        parts.append(element("text", x_label, x=_WIDTH / 2, y=_HEIGHT - 8, text_anchor="middle"))
        return "".join([*parts, *_label_y_axis(self.y, y_label)])


def _label_y_axis(scale: Scale, label: str) -> list[str]:
    ticks = [element("text", _format(y), x=_MARGIN - 6, y=scale.place(y) + 4, text_anchor="end") for y in scale.ticks()]
    turned = f"rotate(-90 12 {_HEIGHT / 2})"
    return [*ticks, element("text", label, x=12, y=_HEIGHT / 2, text_anchor="middle", transform=turned)]


def _format(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _svg(parts: Sequence[str], height: int = _HEIGHT, width: int = _WIDTH) -> str:
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img">{"".join(parts)}</svg>'
