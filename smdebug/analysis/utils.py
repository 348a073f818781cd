"""Helpers for rules: refreshing on and off, inputs of a step, parsing of lists."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from numpy.typing import NDArray

from smdebug.config.json_config import parse_bool
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]

TrialsT = TypeVar("TrialsT", bound=OpenRun | Iterable[OpenRun])

_TRAILING_NUMBER = re.compile(r"(\d+)$")


@contextmanager
def no_refresh(trials: TrialsT) -> Iterator[TrialsT]:
    """Turn refreshing of a trial or of several off within the block, and restore it afterwards; yield what is given."""
    with _dynamic_refresh(trials, on=False):
        yield trials


@contextmanager
def refresh(trials: TrialsT) -> Iterator[TrialsT]:
    """Turn refreshing of a trial or of several on within the block, and restore it afterwards; yield what is given."""
    with _dynamic_refresh(trials, on=True):
        yield trials


@contextmanager
def _dynamic_refresh(trials: OpenRun | Iterable[OpenRun], *, on: bool) -> Iterator[None]:
    chosen: list[Any] = [trials] if hasattr(trials, "dynamic_refresh") else list(trials)
    before = [trial.dynamic_refresh for trial in chosen]
    for trial in chosen:
        trial.dynamic_refresh = on
    try:
        yield
    finally:
        for trial, state in zip(chosen, before, strict=True):
            trial.dynamic_refresh = state


def parse_list_from_str(arg: str | list[str] | None, delimiter: str = ",") -> list[str]:
    """Split a text at the delimiter and strip the parts; return [] for None or "", and a list unchanged."""
    if not arg:
        return []
    if isinstance(arg, list):
        return arg
    return [part.strip() for part in arg.split(delimiter)]


def _tensor_name_sorter(tname: str) -> tuple[int, str]:
    """Return a sort key by the number at the end of a name; names without a number come first."""
    number = _TRAILING_NUMBER.search(tname)
    return (int(number[1]) if number else -1, tname)


def read_step_data(trial: OpenRun, names: Iterable[str], step: int, mode: ModeKeys) -> list[NDArray[Any]]:
    """Return the values of the given tensors at a step, ordered by the numbers at the end of their names.

    Tensors that were not saved at the step are left out.

    Args:
        trial: the run.
        names: the names of the tensors.
        step: the step, in the numbers of the mode.
        mode: the mode.

    Raises:
        TensorUnavailableForStep: only reductions of a tensor were saved, or its file is missing or damaged.
    """
    global_step = trial.global_step(mode, step)
    if global_step is None:
        return []
    tensors = [trial.tensor(name) for name in sorted(names, key=_tensor_name_sorter)]
    return [tensor.value(global_step) for tensor in tensors if tensor.has_step(global_step)]
