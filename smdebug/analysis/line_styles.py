"""Colours and dashes of plotted lines: a mode looks the same in every plot."""

from collections.abc import Sequence
from typing import NamedTuple

from smdebug.mode_keys import ModeKeys

# Hues that people with colour blindness can tell apart; each has a contrast of 3:1 or more on white.
COLOURS = ("#0072b2", "#00805f", "#a8437f", "#c35500", "#8a6d00", "#3f83a8", "#7a5195", "#5f6b75")
_MODES = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
# Lengths of dashes and gaps, in widths of the line.
_DASHES: dict[ModeKeys, tuple[int, ...]] = {ModeKeys.EVAL: (4, 2), ModeKeys.PREDICT: (1, 2)}


class LineStyle(NamedTuple):
    """How a line is drawn.

    Attributes:
        colour: as #rrggbb.
        dashes: lengths of dashes and gaps, in widths of the line; empty for a solid one.
    """

    colour: str
    dashes: tuple[int, ...]


def choose_style(mode: ModeKeys, subject: int = 0, subjects: int = 1) -> LineStyle:
    """Return the style of a line: the dashes tell its mode; the colour tells its subject, or the mode if there is one.

    >>> choose_style(ModeKeys.EVAL)
    LineStyle(colour='#00805f', dashes=(4, 2))
    >>> choose_style(ModeKeys.EVAL, subject=0, subjects=2)
    LineStyle(colour='#0072b2', dashes=(4, 2))

    Args:
        mode: of the steps that the line goes through.
        subject: number of what the line is of, a tensor or a worker, among all that are drawn.
        subjects: how many there are.
    """
    number = subject if subjects > 1 else _MODES.index(mode) if mode in _MODES else 0
    return LineStyle(COLOURS[number % len(COLOURS)], _DASHES.get(mode, ()))


def label_line(name: str, mode: ModeKeys, worker: str, modes: Sequence[ModeKeys], workers: Sequence[str]) -> str:
    """Return a line's name in a legend: with its mode and worker where there are several of them.

    >>> label_line("loss", ModeKeys.EVAL, "worker_0", [ModeKeys.TRAIN, ModeKeys.EVAL], ["worker_0"])
    'loss (EVAL)'

    Args:
        name: the tensor.
        mode: of the line's steps; GLOBAL where they were saved without a mode.
        worker: who saved it.
        modes: those of all lines.
        workers: those of all lines.
    """
    of_mode = "no mode" if mode is ModeKeys.GLOBAL else mode.name
    parts = [of_mode] * (len(modes) > 1) + [worker] * (len(workers) > 1)
    return f"{name} ({', '.join(parts)})" if parts else name
