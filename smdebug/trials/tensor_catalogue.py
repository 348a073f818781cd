"""Which tensors a run holds, filled from its index files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import REDUCTIONS_PREFIX, reverse_reduction_tensor_name
from smdebug.core.tensor import Tensor

if TYPE_CHECKING:
    from smdebug.core.index_reader import IndexFile
    from smdebug.core.step_table import StepTable
    from smdebug.core.tensor import TensorSource


class TensorCatalogue:
    """The tensors of a run by name.

    Args:
        trial: what the tensors belong to.
        table: the steps of the run.
        cache: whether the tensors keep values that were read.

    Attributes:
        tensors: all tensors seen so far.
    """

    def __init__(self, trial: TensorSource, table: StepTable, *, cache: bool) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._trial = trial
        self._table = table
        self._cache = cache
        self._newest_event_step: dict[str, int] = {}

    def enter(self, index: IndexFile) -> None:
        """Enters what one worker saved at one step; of two entries of one name the later counts."""
        for location in index.tensors:
            if REDUCTIONS_PREFIX in location.tensorname:
                tname, reduction, of_absolute = reverse_reduction_tensor_name(location.tensorname)
                saved = self._get(tname).add(index.step, index.worker)
                saved.reductions[reduction, of_absolute] = location
            else:
                self._get(location.tensorname).add(index.step, index.worker).location = location
        for shape in index.shapes:
            tensor = self._get(shape.name)
            tensor.original_name = shape.original_name
            tensor.add(index.step, index.worker).shape = shape
        if index.tensors:
            step, worker = _split(index.tensors[0].event_file_name)
            self._newest_event_step[worker] = max(self._newest_event_step.get(worker, -1), step)

    def names(self, step: int | None, mode: ModeKeys) -> list[str]:
        """Names of the tensors saved at a step, in the mode's numbers, or in a mode, or at all.

        Raises:
            KeyError: the mode has not been seen, or not this step of it.
        """
        if step is None and mode is ModeKeys.GLOBAL:
            return list(self.tensors)
        if mode is not ModeKeys.GLOBAL and mode not in self._table.modes():
            raise KeyError(f"No step of mode {mode.name} was saved so far; trial.modes() lists those that were.")
        wanted = self._table.steps(mode, show_incomplete=True) if step is None else [step]
        global_steps = [self._table.global_step(mode, each) for each in wanted]
        if step is not None and global_steps == [None]:
            raise KeyError(f"Step {step} of mode {mode.name} was not saved; see trial.steps(modes.{mode.name}).")
        return [
            name
            for name, tensor in self.tensors.items()
            if any(each is not None and tensor.has_step(each) for each in global_steps)
        ]

    def reduction_names(self, tname: str) -> set[str]:
        """The names under which reductions of a tensor are stored."""
        return {
            location.tensorname
            for step in self._table.steps(show_incomplete=True)
            for saved in self.tensors[tname].saved(step).values()
            for location in saved.reductions.values()
        }

    def is_newest(self, event_file_name: str) -> bool:
        """Whether no later event file of the same worker was named by an index."""
        step, worker = _split(event_file_name)
        return self._newest_event_step.get(worker, -1) <= step

    def _get(self, tname: str) -> Tensor:
        tensor = self.tensors.get(tname)
        if tensor is None:
            tensor = self.tensors[tname] = Tensor(tname, self._trial, self._table, self._cache)
        return tensor


def _split(event_file_name: str) -> tuple[int, str]:
    """(step, worker) as they stand in an event file's name."""
    step, _, worker = event_file_name.rpartition("/")[2].partition("_")
    return int(step), worker
