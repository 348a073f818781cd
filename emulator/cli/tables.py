"""Tables of the command line, fitted to the terminal's width.

Long names are cut in their middle; nothing is cut where the output is not a terminal.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

_MIN_WIDTH = 12


def format_table(rows: Sequence[Sequence[str]], cut: int = 0) -> str:
    """Align columns by their widest cells, the first row being the header.

    Args:
        rows: of the same length.
        cut: the column whose cells are cut where the terminal is too narrow: jobs are told apart by their names' ends.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    others = sum(widths) - widths[cut] + 2 * (len(widths) - 1)
    widths[cut] = max(_MIN_WIDTH, min(widths[cut], read_width() - others))
    lines = (
        "  ".join(cut_middle(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def cut_middle(text: str, width: int) -> str:
    """Cut the middle out of a text that is too wide; more of its end stays than of its beginning."""
    end = (width - 1) * 2 // 3
    return text if len(text) <= width else f"{text[: width - 1 - end]}…{text[-end:]}"


def wrap(text: str, indent: str, first: str = "") -> list[str]:
    """Break the lines of a text at the terminal's edge, indented; ``first`` stands in the first one's indentation."""
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, max(20, read_width() - len(indent)))]
    return [f"{first if at == 0 else '':<{len(indent)}}{line}" for at, line in enumerate(lines)]


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "job"), count_of(0, "job")
    ('1 job', '0 jobs')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_size(count: int) -> str:
    """Return a number of bytes in words.

    >>> format_size(2_500_000_000), format_size(3_400_000), format_size(99_700), format_size(800)
    ('2.5 GB', '3 MB', '100 kB', '800 B')
    """
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    unit, size = ("MB", 1e6) if count >= 1e6 else ("kB", 1e3) if count >= 1e3 else ("B", 1)
    return f"{count / size:.0f} {unit}"


def read_width() -> int:
    """Read how many characters fit a line; where nobody reads along, as many as there are."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return sys.maxsize
