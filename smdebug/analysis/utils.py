"""Holding trials still while they are looked at, what went into a step, and parsing of texts from configurations."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from smdebug.config.json_config import parse_bool
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun

__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]

_TRAILING_NUMBER = re.compile(r"(\d+)$")


@contextmanager
def no_refresh(trials: OpenRun | Iterable[OpenRun]) -> Iterator[None]:
    """Within the block no question to these trials looks for new steps. Afterwards they are as they were before."""
    with _dynamic_refresh(trials, on=False):
        yield


@contextmanager
def refresh(trials: OpenRun | Iterable[OpenRun]) -> Iterator[None]:
    """Within the block questions to these trials look for new steps. Afterwards they are as they were before."""
    with _dynamic_refresh(trials, on=True):
        yield


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
    """Split a text at the delimiter and strip the parts; None or "" gives [], a list is returned as it is."""
    if not arg:
        return []
    if isinstance(arg, list):
        return arg
    return [part.strip() for part in arg.split(delimiter)]


def _tensor_name_sorter(tname: str) -> tuple[int, str]:
    """Sort key of names that end in numbers: input_2 before input_10, and names without a number first."""
    number = _TRAILING_NUMBER.search(tname)
    return (int(number[1]) if number else -1, tname)


def read_step_data(trial: OpenRun, names: Iterable[str], step: int, mode: ModeKeys) -> list[NDArray[Any]]:
    """Return the values of those of the tensors that a step has, ordered by the number that a name ends in.

    Args:
        trial: the run.
        names: tensors.
        step: step, in the mode's numbers.
        mode: what the step counts.

    Raises:
        TensorUnavailableForStep: only reductions of one were saved, or its file is missing or damaged.
    """
    global_step = trial.global_step(mode, step)
    if global_step is None:
        return []
    tensors = [trial.tensor(name) for name in sorted(names, key=_tensor_name_sorter)]
    return [tensor.value(global_step) for tensor in tensors if tensor.has_step(global_step)]
