"""A page of charts and tables as one HTML file that needs no network: inline SVG and CSS, no script."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _MARGIN = 560, 300, 68
_COLOURS = ("#1f5fa8", "#c2571a", "#2c7a43", "#8b3a8f", "#7a6a1c", "#5a5a5a")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #ccc; margin-top: 2.2rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: .25rem .6rem; text-align: right; }
th { background: #f3f3f3; } svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; }
"""


def render_page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """The page; sections are (heading, HTML)."""
    body = "\n".join(f"<h2>{escape(heading)}</h2>\n{content}" for heading, content in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def render_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table; numbers with six digits."""
    cells = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(_format(each))}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def render_lines(series: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Lines through points (x, y), one a series; points that are no finite numbers are left out."""
    finite = {
        name: [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])] for name, points in series.items()
    }
    axes = _Axes([point for points in finite.values() for point in points])
    parts = [axes.frame(x_label, y_label)]
    for number, (name, points) in enumerate(finite.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(points) == 1:
            # There is no line through one point.
            parts.append(
                f'<circle cx="{axes.x(points[0][0]):.1f}" cy="{axes.y(points[0][1]):.1f}" r="3" fill="{colour}"/>'
            )
        parts.append(f'<text x="{_MARGIN + 8}" y="{16 + 15 * number}" fill="{colour}">{escape(name)}</text>')
    return _svg(parts)


def render_points(points: Sequence[tuple[float, float]], x_label: str, y_label: str) -> str:
    """Points (x, y) and the line y = 0."""
    finite = [point for point in points if math.isfinite(point[0]) and math.isfinite(point[1])]
    axes = _Axes([*finite, *((x, 0.0) for x, _ in finite[:1])])
    parts = [axes.frame(x_label, y_label)]
    zero = axes.y(0.0)
    parts.append(f'<line x1="{_MARGIN}" y1="{zero:.1f}" x2="{_WIDTH - 10}" y2="{zero:.1f}" stroke="#999"/>')
    parts += [
        f'<circle cx="{axes.x(x):.1f}" cy="{axes.y(y):.1f}" r="2.5" fill="{_COLOURS[0]}" fill-opacity=".6"/>'
        for x, y in finite
    ]
    return _svg(parts)


def render_bars(values: Mapping[str, float]) -> str:
    """Horizontal bars, as many as there are names, longest first as given."""
    longest = max((abs(value) for value in values.values() if math.isfinite(value)), default=0.0) or 1.0
    parts = []
    for number, (name, value) in enumerate(values.items()):
        top = 8 + 24 * number
        width = (_WIDTH - 260) * abs(value) / longest if math.isfinite(value) else 0
        parts.append(f'<text x="150" y="{top + 14}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="158" y="{top}" width="{width:.1f}" height="18" fill="{_COLOURS[0]}"/>')
        parts.append(f'<text x="{164 + width:.1f}" y="{top + 14}">{_format(value)}</text>')
    return _svg(parts, 16 + 24 * len(values))


class _Axes:
    """Scales that show all of some points."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self._x = _widen([x for x, _ in points])
        self._y = _widen([y for _, y in points])

    def x(self, value: float) -> float:
        low, high = self._x
        return _MARGIN + (_WIDTH - _MARGIN - 10) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self._y
        return _HEIGHT - _MARGIN - (_HEIGHT - _MARGIN - 10) * (value - low) / (high - low)

    def frame(self, x_label: str, y_label: str) -> str:
        bottom = _HEIGHT - _MARGIN
        parts = [f'<path d="M{_MARGIN} 10V{bottom}H{_WIDTH - 10}" fill="none" stroke="#444"/>']
        for part in (0.0, 0.25, 0.5, 0.75, 1.0):
            x = self._x[0] + part * (self._x[1] - self._x[0])
            y = self._y[0] + part * (self._y[1] - self._y[0])
            parts.append(f'<text x="{self.x(x):.1f}" y="{bottom + 18}" text-anchor="middle">{_format(x, 3)}</text>')
            parts.append(f'<text x="{_MARGIN - 6}" y="{self.y(y) + 4:.1f}" text-anchor="end">{_format(y, 3)}</text>')
        parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
        parts.append(
            f'<text x="12" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 12 {_HEIGHT / 2})">'
            f"{escape(y_label)}</text>"
        )
        return "".join(parts)


def _widen(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    # A half more or less is nothing to a large number.
    margin = max(0.5, abs(low) / 1e9)
    return (low, high) if high > low else (low - margin, high + margin)


def _format(value: object, digits: int = 6) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _svg(parts: Sequence[str], height: int = _HEIGHT) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'
