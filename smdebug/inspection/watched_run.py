"""Open runs, with a cache of numbers and previews of long runs."""

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

# How many numbers of one run are cached, about 50 MB.
_KEPT_NUMBERS = 1_000_000
# The maximum size in bytes of a value that is read for its statistics or its chart.
MOST_BYTES = 256 * 1024**2
# How many index files are read to find the steps of a tensor; each may take some milliseconds.
_MOST_EXAMINED = 4000
# The number of steps of a preview, equal to what the page asks for first.
_FEW_STEPS = 24
# How long a preview of a growing run is valid.
_PREVIEW_SECONDS = 5.0
# How many values are prefetched together.
_READ_TOGETHER = 512

Reduction = tuple[str, bool]
_Numbers = dict[int, float]


class NoTensorsError(SMDebugValueError):
    """There is no run at the path, or not yet."""


class WatchedRun:
    """A run, open for questions from one thread.

    Args:
        path: a folder, or s3://bucket/prefix.
        few: open a preview, if it is a long run of one worker.

    Raises:
        NoTensorsError: there is no run at the path, or not all workers have begun.
        SMDebugError: the run cannot be read.

    Attributes:
        trial: the run.
        files: its files.
        unread: name, global step and worker of values that are damaged or too large.
        steps_of_each: how many steps of the run each known step represents; 1 unless this is a preview.
    """

    def __init__(self, path: str, *, few: bool = False) -> None:
        files = open_files(path)
        names = files.list_collections_files()
        if not names:
            text = "The job saved no tensors." if files.has_ended() else "No tensors have been saved yet."
            raise NoTensorsError(text)
        workers = load_collections(files, names[0]).get_num_workers()
        if len(names) < workers and not files.has_ended():
            raise NoTensorsError("Not all workers have begun to save tensors: try again later.")
        self._opened_at = time.monotonic()
        self.unread: set[tuple[str, int, str]] = set()
        self.steps_of_each = 1.0
        self.files = files
        if few and workers == 1:
            self.trial = self._open_preview(files, path)
        else:
            # Checked first, so that S3RunFiles lists a run that has ended only once.
            files.has_ended()
            self.trial = Trial(files, path)
        self._numbers: OrderedDict[tuple[str, Reduction | None, str | None], _Numbers] = OrderedDict()

    def _open_preview(self, files: RunFiles, path: str) -> Trial:
        listed = FewSteps(files, _FEW_STEPS)
        trial = Trial(listed, path)
        trial.maybe_refresh()
        trial.dynamic_refresh = False
        self.steps_of_each = max(listed.count / (len(trial.steps()) or 1), 1.0)
        return trial

    def suffices(self, question: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether a question can be answered; a preview can answer only those that a page begins with.

        Args:
            question: a key of `smdebug.inspection.questions.QUESTIONS`.
            arguments: its arguments.
        """
        if self.trial.dynamic_refresh:
            return True
        if not self.trial.loaded_all_steps and time.monotonic() - self._opened_at > _PREVIEW_SECONDS:
            return False
        if question == "describe":
            return True
        steps = self.trial.steps()
        return asks_for_few(question, arguments) and all(
            self.trial.run_index.find_steps(str(name), steps) == steps for name in arguments.get("tensors", ())
        )

    def choose_steps(self, mode: ModeKeys, most: int, first: int | None = None, last: int | None = None) -> list[int]:
        """Return at most `most` global steps of a mode, evenly chosen, with the first and the last.

        Args:
            mode: the mode; GLOBAL for all steps.
            most: the maximum number of steps.
            first: the lowest global step.
            last: the highest global step.
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
        """Return for each tensor at most `most` global steps at which it was saved, and the number of all such steps.

        The number is an estimate if not all index files are read.
        """
        every = self.choose_steps(mode, 1 << 62, first, last)
        index = self.trial.run_index
        wanted, found = list(names), {}
        count = most
        while wanted:
            examined = thin_out(every, count)
            index.read(examined)
            whole = len(examined) == len(every)
            rare = []
            for name in wanted:
                steps = index.find_steps(name, examined)
                if len(steps) < most and not whole and len(steps) < len(examined) and count < _MOST_EXAMINED:
                    # A tensor that is saved rarely may be missing from the chosen steps: read more index files.
                    rare.append(name)
                    continue
                share = 1.0 if whole else len(every) / len(examined)
                known = round(len(steps) * share * self.steps_of_each)
                found[name] = (thin_out(steps, most), known)
            wanted, count = rare, min(4 * count, _MOST_EXAMINED)
        return found

    def split_steps(self, name: str, steps: Iterable[int]) -> dict[tuple[ModeKeys, str], list[int]]:
        """Return the steps of a tensor by mode and worker, sorted by both.

        Args:
            name: the tensor.
            steps: global steps; those at which the tensor was not saved are left out.
        """
        found: dict[tuple[ModeKeys, str], list[int]] = {}
        for step in steps:
            for worker, index in self.trial.run_index.at(step).items():
                if name in index.layout.names:
                    found.setdefault((index.mode, worker), []).append(step)
        return dict(sorted(found.items(), key=lambda each: (each[0][0].value, each[0][1])))

    def read_numbers(
        self, name: str, steps: Sequence[int], reduction: Reduction | None, worker: str | None = None
    ) -> list[float]:
        """Return one number per step: a reduction, or the value; NaN if there is none, or it is damaged.

        Args:
            name: the tensor.
            steps: global steps.
            reduction: name and whether of absolute values; None for the value, or its mean if it has several elements.
            worker: the worker that saved the tensor; None for the first one by name at each step.
        """
        self.read_together([name], steps, reduction, worker)
        known = self._find_numbers(name, reduction, worker)
        return [known.get(step, math.nan) for step in steps]

    def read_together(
        self, names: Sequence[str], steps: Sequence[int], reduction: Reduction | None, worker: str | None = None
    ) -> None:
        """Read into the cache what `read_numbers` will return, step by step, as the tensors are stored.

        Args:
            names: the tensors.
            steps: global steps.
            reduction: as in `read_numbers`.
            worker: as in `read_numbers`.
        """
        known = {name: self._find_numbers(name, reduction, worker) for name in names}
        tensors: list[WorkerTensor] = []
        for step in steps:
            unread = [name for name in names if step not in known[name]]
            for name in unread:
                found = self.trial.step_tensors.saved([name], step)
                tensors += [each for each in found if worker in (None, each.worker)][:1]
            if len(tensors) >= _READ_TOGETHER:
                self._read_tensors(tensors, reduction, known)
                tensors = []
        self._read_tensors(tensors, reduction, known)

    def _find_numbers(self, name: str, reduction: Reduction | None, worker: str | None) -> _Numbers:
        # With one worker, None and the name of the worker are the same.
        key = (name, reduction, worker if self.trial.num_workers > 1 else None)
        found = self._numbers.setdefault(key, {})
        self._numbers.move_to_end(key)
        while len(self._numbers) > 1 and sum(map(len, self._numbers.values())) > _KEPT_NUMBERS:
            self._numbers.popitem(last=False)
        return found

    def _read_tensors(
        self, tensors: Sequence[WorkerTensor], reduction: Reduction | None, into: Mapping[str, _Numbers]
    ) -> None:
        key = reduction or ("mean", False)
        self.trial.step_tensors.prefetch(tensors, [key])
        for tensor in tensors:
            try:
                into[tensor.name][tensor.step] = self._reduce(tensor, key)
            except SMDebugError:
                into[tensor.name][tensor.step] = math.nan  # the question `values` of that step reports why
                self.unread.add((tensor.name, tensor.step, tensor.worker))

    def _reduce(self, tensor: WorkerTensor, key: Reduction) -> float:
        tensors, saved = self.trial.step_tensors, tensor.saved
        # A saved reduction is preferred.
        location = saved.reductions.get(key)
        if location is not None:
            return float(np.squeeze(tensors.read_record(tensor, location)))
        if saved.location is None:
            return math.nan
        if saved.location.length > MOST_BYTES:
            raise SMDebugValueError(f"Its value is larger than {MOST_BYTES // 1024**2} MB.")
        array = tensors.read_record(tensor, saved.location)
        if array.dtype.kind not in "biufc" or not array.size:
            return math.nan
        if array.dtype.kind == "c":
            array = np.abs(array)
        if array.size == 1 and key[0] in ("mean", "min", "max", "sum", "prod"):
            return float(abs(array.item()) if key[1] else array.item())
        with np.errstate(all="ignore"):
            return float(get_numpy_reduction(key[0], array.astype(np.float64), key[1]))


def asks_for_few(question: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a preview may answer a question: a description, or a line through few steps."""
    if question == "describe":
        return True
    parts = any(arguments.get(name) not in (None, "", "GLOBAL") for name in ("mode", "first", "last"))
    # Numbers in a query are texts.
    most = str(arguments.get("most", ""))
    return question == "series" and not parts and most.isdecimal() and 0 < int(most) <= _FEW_STEPS


def parse_reduction(text: str | None) -> Reduction | None:
    """Split a reduction such as ``abs_mean`` into its name and whether it is of absolute values; None for no text.

    Raises:
        SMDebugValueError: the reduction does not exist.
    """
    if not text:
        return None
    of_absolute = text.startswith("abs_")
    name = text.removeprefix("abs_")
    check_reduction_name(name)
    return name, of_absolute
