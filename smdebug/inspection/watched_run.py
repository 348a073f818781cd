"""A run that is looked at again and again: numbers that were read once are kept, and few steps stand for many."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.format.reductions import check_reduction_name, get_numpy_reduction
from smdebug.mode_keys import ModeKeys
from smdebug.trials.create import create_trial, open_files
from smdebug.trials.run_collections import load_collections
from smdebug.trials.step_tensors import Place
from smdebug.trials.trial import Trial

# Numbers kept of one run: of the tensors that were asked for last, some 50 MB at most.
_KEPT_NUMBERS = 1_000_000
# Bytes of one value that is read whole, for its statistics or its picture.
MOST_BYTES = 256 * 1024**2

# Index files that are read to find steps of a tensor; each takes some milliseconds where a step has many tensors.
_MOST_LOOKED_INTO = 4000

Reduction = tuple[str, bool]
_Numbers = dict[int, float]


class NoTensorsError(SMDebugValueError):
    """There is no run here, or not yet."""


class WatchedRun:
    """One run, open for questions; asked by one thread.

    Args:
        path: a folder, or s3://bucket/prefix.

    Raises:
        NoTensorsError: it holds no run.
        SMDebugError: it cannot be read, or not every worker has begun.

    Attributes:
        trial: the run.
    """

    def __init__(self, path: str) -> None:
        files = open_files(path)
        names = files.list_collections_files()
        if not names:
            text = "The job saved no tensors." if files.has_ended() else "No tensors have been saved yet."
            raise NoTensorsError(text)
        if len(names) < load_collections(files, names[0]).get_num_workers() and not files.has_ended():
            raise NoTensorsError("Not all workers have begun to save tensors: look again in a moment.")
        self.trial: Trial = create_trial(path)
        self._numbers: OrderedDict[tuple[str, Reduction | None], _Numbers] = OrderedDict()

    def choose_steps(self, mode: ModeKeys, most: int, first: int | None = None, last: int | None = None) -> list[int]:
        """Return global steps of a mode, evenly chosen where there are more than ``most``; both ends are among them.

        Args:
            mode: GLOBAL for all.
            most: how many.
            first: the lowest wanted.
            last: the highest wanted.
        """
        trial = self.trial
        trial.maybe_refresh()
        steps: Sequence[int] = trial.steps(ModeKeys.GLOBAL)
        if mode is not ModeKeys.GLOBAL:
            steps = [step for each in trial.steps(mode) if (step := trial.global_step(mode, each)) is not None]
        return thin_out([s for s in steps if (first is None or s >= first) and (last is None or s <= last)], most)

    def find_steps_of(
        self, names: Iterable[str], mode: ModeKeys, most: int, first: int | None = None, last: int | None = None
    ) -> dict[str, tuple[list[int], int]]:
        """Return of each tensor global steps at which it was saved, at most so many, and of how many they were chosen.

        Where the run has so many steps that not all index files are looked into, the count is that of the run's.
        """
        every = self.choose_steps(mode, 1 << 62, first, last)
        index = self.trial.run_index
        wanted, found = list(names), {}
        look = most
        while wanted:
            looked_into = thin_out(every, look)
            index.read(looked_into)
            whole = len(looked_into) == len(every)
            seldom = []
            for name in wanted:
                steps = index.find_steps(name, looked_into)
                if len(steps) < most and not whole and len(steps) < len(looked_into) and look < _MOST_LOOKED_INTO:
                    # A tensor that is saved seldom is missed by steps that are chosen blindly: more are looked into.
                    seldom.append(name)
                    continue
                known = len(steps) if whole else round(len(steps) / len(looked_into) * len(every))
                found[name] = (thin_out(steps, most), known)
            wanted, look = seldom, min(4 * look, _MOST_LOOKED_INTO)
        return found

    def read_numbers(self, name: str, steps: Sequence[int], reduction: Reduction | None) -> list[float]:
        """Return a number a step: the tensor's only one, or a reduction; NaN where there is none, or it is damaged.

        Args:
            name: the tensor.
            steps: global steps.
            reduction: name and whether of absolute values; None for the value, which is its mean where it has several.
        """
        known = self._find_numbers(name, reduction)
        unread = [step for step in steps if step not in known]
        for start in range(0, len(unread), 512):
            self._read_part(name, unread[start : start + 512], reduction, known)
        return [known.get(step, math.nan) for step in steps]

    def _find_numbers(self, name: str, reduction: Reduction | None) -> _Numbers:
        key = (name, reduction)
        found = self._numbers.setdefault(key, {})
        self._numbers.move_to_end(key)
        while len(self._numbers) > 1 and sum(map(len, self._numbers.values())) > _KEPT_NUMBERS:
            self._numbers.popitem(last=False)
        return found

    def _read_part(self, name: str, steps: Sequence[int], reduction: Reduction | None, into: _Numbers) -> None:
        tensors = self.trial.step_tensors
        # At each step the first worker's, by name.
        places = [found[0] for step in steps if (found := tensors.places([name], step))]
        key = reduction or ("mean", False)
        tensors.prefetch(places, [key])
        for place in places:
            try:
                into[place.step] = self._reduce(place, key)
            except SMDebugError:
                into[place.step] = math.nan  # `values` of that step says why

    def _reduce(self, place: Place, key: Reduction) -> float:
        tensors, saved = self.trial.step_tensors, place.saved
        # A value of one number is read as it is: what was reduced of it is the same.
        location = saved.reductions.get(key)
        if location is not None:
            return float(np.squeeze(tensors.read_record(place, location)))
        if saved.location is None or saved.location.length > MOST_BYTES:
            return math.nan
        array = tensors.read_record(place, saved.location)
        if array.dtype.kind not in "biufc" or not array.size:
            return math.nan
        if array.dtype.kind == "c":
            array = np.abs(array)
        if array.size == 1 and key[0] in ("mean", "min", "max", "sum", "prod"):
            return float(abs(array.item()) if key[1] else array.item())
        with np.errstate(all="ignore"):
            return float(get_numpy_reduction(key[0], array.astype(np.float64), key[1]))


def thin_out(steps: Sequence[int], most: int) -> list[int]:
    """Return at most so many of some steps, evenly, the first and the last among them.

    >>> thin_out([0, 1, 2, 3, 4, 5, 6, 7, 8], 3)
    [0, 4, 8]
    """
    if len(steps) <= most:
        return list(steps)
    if most <= 1:
        return list(steps[-1:])
    last = len(steps) - 1
    return [steps[round(at * last / (most - 1))] for at in range(most)]


def parse_reduction(text: str | None) -> Reduction | None:
    """Return name and whether of absolute values of e.g. ``abs_mean``; None for none.

    Raises:
        SMDebugValueError: there is no such reduction.
    """
    if not text:
        return None
    of_absolute = text.startswith("abs_")
    name = text.removeprefix("abs_")
    check_reduction_name(name)
    return name, of_absolute
