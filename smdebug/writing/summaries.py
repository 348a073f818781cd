"""Additional output of a run: TensorBoard summaries and SageMaker metrics.

A failure here costs the summary only: the run's own files do not depend on it.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.barrier import guarded
from smdebug.config.collection import SM_METRIC_COLLECTIONS, Collection
from smdebug.mode_keys import ModeKeys
from smdebug.writing.metrics_file import find_metrics_file
from smdebug.writing.tensorboard import TensorboardWriter


class Scalar(NamedTuple):
    """A number on its way to a step.

    Attributes:
        name: as it stands in the run.
        array: of exactly one element.
        is_metric: whether SageMaker's metrics get it too.
        timestamp: seconds since the epoch, None for when it is written.
    """

    name: str
    array: NDArray[Any]
    is_metric: bool
    timestamp: float | None


class Summaries:
    """Takes every number and tensor that is saved, and passes on what somebody wants to see."""

    def __init__(self, tensorboard_dir: str | None, report: Callable[[str, Exception], None]) -> None:
        """Take the folder of TensorBoard's files, None for no such files, and what is told of a failure."""
        self._tensorboard = TensorboardWriter(tensorboard_dir) if tensorboard_dir else None
        self._metrics = find_metrics_file()
        self._report = report

    @property
    def wants_tensors(self) -> bool:
        """Whether anybody looks at whole tensors."""
        return self._tensorboard is not None

    def wants(self, size: int) -> bool:
        """Tell whether a tensor of so many elements is of any use here."""
        return self._tensorboard is not None or (self._metrics is not None and size == 1)

    def report_loss(self, lost: str, error: Exception) -> None:
        """Pass a failure on."""
        self._report(lost, error)

    @guarded("a tensor's summary")
    def add_tensor(
        self,
        name: str,
        array: NDArray[Any],
        collections: Iterable[Collection],
        mode: ModeKeys,
        step: int,
        mode_step: int,
    ) -> None:
        """Show a tensor that was saved for some collections; one of a loss or metric is a SageMaker metric too."""
        found = tuple(collections)
        if self._tensorboard:
            self._tensorboard.add_tensor(name, array, found, mode, step)
        if (
            self._metrics
            and array.size == 1
            and array.dtype.kind in "biuf"
            and any(collection.name in SM_METRIC_COLLECTIONS for collection in found)
        ):
            self._metrics.add(name, float(array.reshape(()).astype(np.float64)), mode, mode_step)

    @guarded("a scalar's summary")
    def add_scalar(self, scalar: Scalar, mode: ModeKeys, step: int, mode_step: int) -> None:
        """Show a number; anything else that a scalar may hold (complex, text) cannot be shown."""
        if scalar.array.dtype.kind not in "biuf":
            return
        number = float(scalar.array.item())
        if self._tensorboard:
            self._tensorboard.add_scalar(scalar.name, number, mode, step)
        if self._metrics and scalar.is_metric:
            self._metrics.add(scalar.name, number, mode, mode_step, scalar.timestamp)

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, what the parent has begun to write."""
        if self._tensorboard:
            self._tensorboard.leave_to_parent()

    @guarded("a step's TensorBoard file")
    def close_step(self) -> None:
        """Make the step's summaries visible."""
        if self._tensorboard:
            self._tensorboard.close()
