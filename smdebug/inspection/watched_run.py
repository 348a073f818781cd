"""A run that is looked at again and again: numbers that were read once are kept, and few steps stand for many."""

import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.format.reductions import check_reduction_name, get_numpy_reduction
from smdebug.inspection.few_steps import FewSteps, thin_out
from smdebug.mode_keys import ModeKeys
from smdebug.reading.run_files import RunFiles
from smdebug.trials.create import open_files
from smdebug.trials.run_collections import load_collections
from smdebug.trials.step_tensors import WorkerTensor
from smdebug.trials.trial import Trial

# Numbers kept of one run: of the tensors that were asked for last, some 50 MB at most.
_KEPT_NUMBERS = 1_000_000
# Bytes of one value that is read whole, for its statistics or its picture.
MOST_BYTES = 256 * 1024**2

# Index files that are read to find steps of a tensor; each takes some milliseconds where a step has many tensors.
_MOST_LOOKED_INTO = 4000
# Of how many steps the first look at a long run is, as many as the page asks for first; and how many seconds it is
# taken for the newest where the run goes on.
_FEW_STEPS = 24
_YOUNG_SECONDS = 5.0
# Values that are announced together: as many as an answer may wait for before the first of them is reduced.
_READ_TOGETHER = 512

Reduction = tuple[str, bool]
_Numbers = dict[int, float]


class NoTensorsError(SMDebugValueError):
    """There is no run here, or not yet."""


class WatchedRun:
    """One run, open for questions; asked by one thread.

    Args:
        path: a folder, or s3://bucket/prefix.
        few: only a first look is wanted: of a long run of one worker some steps stand for all.

    Raises:
        NoTensorsError: it holds no run.
        SMDebugError: it cannot be read, or not every worker has begun.

    Attributes:
        trial: the run.
        files: where it lies.
        unread: name and global step of values that are too large to be read for a number, or are damaged.
        steps_of_each: for how many of the run's steps each one stands that the trial knows; 1 for all but a first look.
    """

    def __init__(self, path: str, *, few: bool = False) -> None:
        files = open_files(path)
        names = files.list_collections_files()
        if not names:
            text = "The job saved no tensors." if files.has_ended() else "No tensors have been saved yet."
            raise NoTensorsError(text)
        workers = load_collections(files, names[0]).get_num_workers()
        if len(names) < workers and not files.has_ended():
            raise NoTensorsError("Not all workers have begun to save tensors: look again in a moment.")
        self._opened_at = time.monotonic()
        self.unread: set[tuple[str, int]] = set()
        self.steps_of_each = 1.0
        self.files = files
        if few and workers == 1:
            self.trial = self._look_at_few(files, path)
        else:
            # Asked before all is listed: the names of a run that has ended are then asked of S3 once.
            files.has_ended()
            self.trial = Trial(files, path)
        self._numbers: OrderedDict[tuple[str, Reduction | None], _Numbers] = OrderedDict()

    def _look_at_few(self, files: RunFiles, path: str) -> Trial:
        listed = FewSteps(files, _FEW_STEPS)
        trial = Trial(listed, path)
        trial.maybe_refresh()
        trial.dynamic_refresh = False
        self.steps_of_each = max(listed.count / (len(trial.steps()) or 1), 1.0)
        return trial

    def suffices(self, question: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a question can be answered: any of a run that is open, of a first look those that a page begins with.

        Args:
            question: one of `smdebug.inspection.questions`.
            arguments: what is asked for.
        """
        if self.trial.dynamic_refresh:
            return True
        if not self.trial.loaded_all_steps and time.monotonic() - self._opened_at > _YOUNG_SECONDS:
            return False
        if question == "describe":
            return True
        steps = self.trial.steps()
        return asks_for_few(question, arguments) and all(
            self.trial.run_index.find_steps(str(name), steps) == steps for name in arguments.get("tensors", ())
        )

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
                share = 1.0 if whole else len(every) / len(looked_into)
                known = round(len(steps) * share * self.steps_of_each)
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
        self.read_together([name], steps, reduction)
        known = self._find_numbers(name, reduction)
        return [known.get(step, math.nan) for step in steps]

    def read_together(self, names: Sequence[str], steps: Sequence[int], reduction: Reduction | None) -> None:
        """Read what `read_numbers` will be asked for, step by step: the tensors of a step lie beside each other.

        Args:
            names: the tensors.
            steps: global steps.
            reduction: as `read_numbers` takes it.
        """
        known = {name: self._find_numbers(name, reduction) for name in names}
        places: list[WorkerTensor] = []
        for step in steps:
            unread = [name for name in names if step not in known[name]]
            # At each step the first worker's, by name.
            places += [found[0] for name in unread if (found := self.trial.step_tensors.saved([name], step))]
            if len(places) >= _READ_TOGETHER:
                self._read_places(places, reduction, known)
                places = []
        self._read_places(places, reduction, known)

    def _find_numbers(self, name: str, reduction: Reduction | None) -> _Numbers:
        key = (name, reduction)
        found = self._numbers.setdefault(key, {})
        self._numbers.move_to_end(key)
        while len(self._numbers) > 1 and sum(map(len, self._numbers.values())) > _KEPT_NUMBERS:
            self._numbers.popitem(last=False)
        return found

    def _read_places(
        self, places: Sequence[WorkerTensor], reduction: Reduction | None, into: Mapping[str, _Numbers]
    ) -> None:
        key = reduction or ("mean", False)
        self.trial.step_tensors.prefetch(places, [key])
        for place in places:
            try:
                into[place.name][place.step] = self._reduce(place, key)
            except SMDebugError:
                into[place.name][place.step] = math.nan  # `values` of that step says why
                self.unread.add((place.name, place.step))

    def _reduce(self, place: WorkerTensor, key: Reduction) -> float:
        tensors, saved = self.trial.step_tensors, place.saved
        # A value of one number is read as it is: what was reduced of it is the same.
        location = saved.reductions.get(key)
        if location is not None:
            return float(np.squeeze(tensors.read_record(place, location)))
        if saved.location is None:
            return math.nan
        if saved.location.length > MOST_BYTES:
            raise SMDebugValueError(f"Its value takes more than {MOST_BYTES // 1024**2} MB.")
        array = tensors.read_record(place, saved.location)
        if array.dtype.kind not in "biufc" or not array.size:
            return math.nan
        if array.dtype.kind == "c":
            array = np.abs(array)
        if array.size == 1 and key[0] in ("mean", "min", "max", "sum", "prod"):
            return float(abs(array.item()) if key[1] else array.item())
        with np.errstate(all="ignore"):
            return float(get_numpy_reduction(key[0], array.astype(np.float64), key[1]))


def asks_for_few(question: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a first look at a long run may answer a question: what it holds, or a line through few steps."""
    if question == "describe":
        return True
    parts = any(arguments.get(name) not in (None, "", "GLOBAL") for name in ("mode", "first", "last"))
    # A number of a query is a text.
    most = str(arguments.get("most", ""))
    return question == "series" and not parts and most.isdecimal() and 0 < int(most) <= _FEW_STEPS


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
