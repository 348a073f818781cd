"""Training job report of a test session: a table, Markdown or HTML.

The table is for the terminal. Markdown and HTML are for the summary of a CI run.
"""

import base64
import html
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2em;max-width:70em}"
    "p{white-space:pre-line}"
    "table{border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left}"
)
_COLUMNS = ("Training job", "Status", "Rule", "Verdict", "Test")
_MIN_NAME_WIDTH = 12
# How many jobs a warning names.
_MOST_NAMES = 3
_BLOCKS, _DRAWN_VALUES = "▁▂▃▄▅▆▇█", 60


def format_table(jobs: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Return the lines of the table.

    If the table is wider than ``width``, the column of tests is left out, and long job names are shortened. A line
    below a job says what ran in place of what it asked for, such as another version.
    """
    rows: list[Sequence[str]] = [(*row[:-1], row[-1].rpartition("::")[2]) for row in (_COLUMNS, *_list_rows(jobs))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    if sum(widths) + 2 * (len(widths) - 1) > width - 1:
        rows = [row[:-1] for row in rows]
        del widths[-1]
    widths[0] = max(_MIN_NAME_WIDTH, min(widths[0], width - 1 - sum(widths[1:]) - 2 * (len(widths) - 1)))
    head, *lines = (
        "  ".join(shorten(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    table, remaining = [head], iter(lines)
    for job in jobs:
        table += islice(remaining, max(1, len(job["rules"])))
        if briefs := "; ".join(each["brief"] for each in job["warnings"] if each.get("brief")):
            table += textwrap.wrap(briefs, width - 1, initial_indent="  ", subsequent_indent="    ")
    return table


def format_warnings(jobs: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Return the lines of all warnings, each once below the names of its jobs; no lines if there are no warnings."""
    names: dict[str, list[str]] = {}
    for job in jobs:
        for each in job["warnings"]:
            named = names.setdefault(f"{each['code']}: {each['text']} {each['remedy']}", [])
            if job["name"] not in named:
                named.append(job["name"])
    texts: dict[tuple[str, ...], list[str]] = {}
    for text, named in names.items():
        texts.setdefault(tuple(named), []).append(text)
    lines: list[str] = []
    for of_jobs, warnings in texts.items():
        more = f" and {len(of_jobs) - _MOST_NAMES} more" if len(of_jobs) > _MOST_NAMES else ""
        lines.append(f"{', '.join(of_jobs[:_MOST_NAMES])}{more}:")
        for text in warnings:
            lines += textwrap.wrap(text, width - 1, initial_indent="  ", subsequent_indent="    ")
    return ["", "Warnings", *lines] if lines else []


def shorten(text: str, width: int) -> str:
    """Cut out the middle of a text that is too wide. The end is kept because job names often differ only there."""
    if len(text) <= width:
        return text
    end = (width - 1) * 2 // 3
    return f"{text[: width - 1 - end]}…{text[-end:]}"


def write_report(path: Path, jobs: Sequence[dict[str, Any]]) -> None:
    """Write the report: HTML if the file's suffix is .html or .htm, else Markdown.

    The HTML report contains the plots. The plots of the Markdown report are separate files, which the summary of a CI
    run does not show. Therefore, it also draws the same values as block characters.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".html", ".htm"):
        path.write_text(_build_html(jobs), encoding="utf-8")
        return
    plots = path.with_name(f"{path.stem}-plots")
    lines = ["## SageMaker training jobs", ""]
    if not jobs:
        lines.append("No training job was created.")
    else:
        lines += [f"| {' | '.join(row)} |" for row in (_COLUMNS, ["---"] * len(_COLUMNS))]
        lines += [f"| {' | '.join(map(_escape_markdown, row))} |" for row in _list_rows(jobs)]
    for job in jobs:
        texts = [job["reason"], *(f"{rule['name']}: {rule['details']}" for rule in job["rules"] if rule["details"])]
        texts += [f"{each['code']}: {each['text']} {each['remedy']}" for each in job["warnings"]]
        drawn = [rule for rule in job["rules"] if rule["plot"]]
        if not (any(texts) or drawn):
            continue
        lines += ["", f"### {_escape_markdown(job['name'])}", ""]
        lines += [line for text in texts if text.strip() for line in _write_item(text)]
        for rule in drawn:
            plots.mkdir(exist_ok=True)
            plot = plots / re.sub(r"[^\w.-]", "_", f"{job['region']}-{job['name']}-{rule['name']}.svg")
            plot.write_text(rule["plot"], encoding="utf-8")
            lines += ["", f"[{_escape_markdown(rule['name'])}]({plots.name}/{plot.name})", ""]
            lines += [
                f"- `{draw(series['Values'])}` {_describe_series(series)}"
                for measured in rule["series"]
                for series in split_by_mode(measured)
            ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def split_by_mode(series: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one series for each mode. If there are several modes, the mode is added to the quantity's name.

    A series without steps yields nothing.

    >>> [(each["Quantity"], each["Values"]) for each in split_by_mode(
    ...     {"Quantity": "loss", "Steps": [0, 1, 2], "Values": [3, 9, 2], "Modes": ["TRAIN", "EVAL", "TRAIN"]}
    ... )]
    [('loss (TRAIN)', [3, 2]), ('loss (EVAL)', [9])]
    """
    steps = series["Steps"]
    # Reports of earlier versions have no modes.
    modes = series.get("Modes") or [None] * len(steps)
    found = dict.fromkeys(modes)
    for mode in found:
        chosen = [at for at, of_step in enumerate(modes) if of_step == mode]
        quantity = series["Quantity"] if len(found) == 1 else f"{series['Quantity']} ({mode})"
        parts = {name: [series[name][at] for at in chosen] for name in ("Steps", "Values")}
        yield {**series, "Quantity": quantity, **parts}


def draw(values: Sequence[Any]) -> str:
    """Draw numbers as block characters of eight heights, scaled from the minimum to the maximum.

    Values that are not finite numbers are drawn as blanks.

    >>> draw([0, 1, 2, 7])
    '▁▂▃█'
    """
    step = max(1, math.ceil(len(values) / _DRAWN_VALUES))
    chosen = [value if isinstance(value, (int, float)) and math.isfinite(value) else None for value in values[::step]]
    numbers = [value for value in chosen if value is not None]
    least, extent = min(numbers, default=0), (max(numbers, default=0) - min(numbers, default=0)) or 1
    return "".join(
        " " if value is None else _BLOCKS[round((value - least) / extent * (len(_BLOCKS) - 1))] for value in chosen
    )


def _describe_series(series: dict[str, Any]) -> str:
    ends = dict.fromkeys(f"{_format_number(series['Values'][end])} at step {series['Steps'][end]}" for end in (0, -1))
    limit = series.get("Threshold")
    fires = "" if limit is None else f"; fires {series['FiresWhen']} {_format_number(limit)}"
    return _escape_markdown(f"{series['Quantity']}: {', '.join(ends)}{fires}")


def _format_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def _list_rows(jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield a row for each rule of each job. Only a job's first row contains the job's name, status and test."""
    for job in jobs:
        name, status, test = job["name"], job["status"], job["test"]
        for rule in job["rules"] or [{"name": "-", "status": "-"}]:
            yield name, status, rule["name"], rule["status"], test
            name = status = test = ""


def _build_html(jobs: Sequence[dict[str, Any]]) -> str:
    def row(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"

    parts = [
        f'<!doctype html><meta charset="utf-8"><title>SageMaker training jobs</title><style>{_STYLE}</style>',
        "<h1>SageMaker training jobs</h1><table>",
        row(_COLUMNS, "th"),
        *(row(cells, "td") for cells in _list_rows(jobs)),
        "</table>",
    ]
    for job in jobs:
        parts.append(f"<h2>{html.escape(job['name'])}</h2><p>{html.escape(job['reason'])}</p>")
        if job["warnings"]:
            warned = (f"<li>{_write_warning(each)}</li>" for each in job["warnings"])
            parts.append(f"<h3>Warnings</h3><ul>{''.join(warned)}</ul>")
        for rule in job["rules"]:
            parts.append(f"<h3>{html.escape(rule['name'])}: {html.escape(rule['status'])}</h3>")
            parts.append(f"<p>{html.escape(rule['details'])}</p>")
            if rule["plot"]:
                content = base64.b64encode(rule["plot"].encode()).decode()
                parts.append(f'<img alt="plot" src="data:image/svg+xml;base64,{content}">')
    return "\n".join(parts) + "\n"


def _write_item(text: str) -> Iterator[str]:
    """Yield the Markdown lines of a list item. The first line of the text is the item, the others are sub-items."""
    first, *others = filter(None, (" ".join(line.split()) for line in text.splitlines()))
    yield f"- {_escape_markdown(first)}"
    for other in others:
        yield f"  - {_escape_markdown(other.removeprefix('- '))}"


def _write_warning(warning: dict[str, str]) -> str:
    code, text, remedy = (html.escape(warning[member]) for member in ("code", "text", "remedy"))
    return f"<strong>{code}</strong>: {text} {remedy}"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([|<>*_`\[\]\\])", r"\\\1", text)
