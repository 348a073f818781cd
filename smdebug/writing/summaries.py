"""Additional output of a run: TensorBoard summaries and SageMaker metrics.

A failure here loses only the summary: the files of the run do not depend on it.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.barrier import guarded
from smdebug.config.collection import SCALAR_COLLECTIONS, SM_METRIC_COLLECTIONS, Collection
from smdebug.format.locations import TENSORBOARD_DIR
from smdebug.mode_keys import ModeKeys
from smdebug.storage.s3 import get_path_text
from smdebug.writing.metrics_file import find_metrics_file
from smdebug.writing.summary_file import SummaryFile


def get_tensorboard_dir(
    out_dir: str, export_tensorboard: bool, tensorboard_dir: str | os.PathLike[str] | None
) -> str | None:
    """Return the folder or `s3://` prefix of TensorBoard files; None to write none."""
    if tensorboard_dir:
        return get_path_text(tensorboard_dir)
    return f"{out_dir.rstrip('/')}/{TENSORBOARD_DIR}" if export_tensorboard else None


class Scalar(NamedTuple):
    """A number to be saved at a step.

    Attributes:
        name: name of the tensor in the run.
        array: array with exactly one element.
        is_metric: whether the number is also written to SageMaker's metrics file.
        timestamp: seconds since the epoch.
        mode: the mode in which the script gave the number, which names the metric. As upstream: the tensor may wait for
            a step of another mode.
    """

    name: str
    array: NDArray[Any]
    is_metric: bool
    timestamp: float
    mode: ModeKeys


class Summaries:
    """Receives every saved number and tensor, and passes it to TensorBoard files and SageMaker metrics if enabled.

    Each step and mode has its own TensorBoard file, with valid checksums. One is open at a time.
    """

    def __init__(self, tensorboard_dir: str | None, report: Callable[[str, Exception], None]) -> None:
        """Initialize with the folder of TensorBoard files (None for no files), and a callback that reports failures."""
        self._tensorboard_dir = tensorboard_dir
        self._file: SummaryFile | None = None
        self._step_of_file: tuple[ModeKeys, int] | None = None
        self._metrics = find_metrics_file()
        self.report_loss = report
        self._modes_with_graph: set[ModeKeys] = set()

    @property
    def wants_tensors(self) -> bool:
        """Whether whole tensors are used."""
        return self._tensorboard_dir is not None

    def wants(self, collections: tuple[Collection, ...]) -> bool:
        """Return whether a tensor saved for some collections is used."""
        return self._tensorboard_dir is not None or (self._metrics is not None and _is_metric(collections))

    @guarded("a tensor's summary")
    def add_tensor(
        self,
        name: str,
        array: NDArray[Any],
        collections: tuple[Collection, ...],
        mode: ModeKeys,
        step: int,
        mode_step: int,
    ) -> None:
        """Add a tensor saved for some collections; the mean of a loss or metric is also a SageMaker metric."""
        if self._tensorboard_dir is not None:
            self._show(name, array, collections, mode, step)
        if self._metrics and array.size and array.dtype.kind in "biuf" and _is_metric(collections):
            self._metrics.add(name, float(array.mean(dtype=np.float64)), mode, mode_step)

    @guarded("a scalar's summary")
    def add_scalar(self, scalar: Scalar, mode: ModeKeys, step: int, metric_step: int) -> None:
        """Add a real number; other scalars (complex numbers, text) are ignored.

        Args:
            scalar: the number.
            mode: the mode of the step that it is saved at.
            step: the global step that it is saved at.
            metric_step: the step of the mode in which the script gave it.
        """
        if scalar.array.dtype.kind not in "biuf":
            return
        number = float(scalar.array.item())
        if self._tensorboard_dir is not None:
            self._open_file(mode, step).add_number(scalar.name, number, step)
        if self._metrics and scalar.is_metric:
            self._metrics.add(scalar.name, number, scalar.mode, metric_step, scalar.timestamp)

    @guarded("a graph")
    def add_graph(self, encode: Callable[[], bytes], mode: ModeKeys, step: int) -> None:
        """Add what `encode` returns, a GraphDef, unless the mode has a graph already."""
        if self._tensorboard_dir is not None and mode not in self._modes_with_graph:
            self._modes_with_graph.add(mode)
            self._open_file(mode, step).add_graph(encode())

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the file that the parent has open."""
        self._file = None

    @guarded("a step's TensorBoard file")
    def close_step(self) -> None:
        """Make the step's summaries visible; later ones of the step are added to its file."""
        if self._file is not None:
            self._file.close()

    def _show(
        self, name: str, array: NDArray[Any], collections: tuple[Collection, ...], mode: ModeKeys, step: int
    ) -> None:
        """Show numbers of scalar collections as scalars, and other tensors as histograms if a collection wants it."""
        others = [collection for collection in collections if collection.name not in SCALAR_COLLECTIONS]
        if array.size == 1 and len(others) < len(collections):
            number = float(array.reshape(()).astype(np.float64))
            self._open_file(mode, step).add_number(name, number, step)
        for collection in others:
            if collection.save_histogram and array.size and array.dtype.kind in "iuf":
                self._open_file(mode, step).add_histogram(f"{collection.name}/{name}", array, step)

    def _open_file(self, mode: ModeKeys, step: int) -> SummaryFile:
        if self._file is None or self._step_of_file != (mode, step):
            if self._file is not None:
                self._file.close()
            assert self._tensorboard_dir is not None
            self._step_of_file = (mode, step)
            self._file = SummaryFile(self._tensorboard_dir, mode.name, step)
        return self._file


def _is_metric(collections: tuple[Collection, ...]) -> bool:
    return any(collection.name in SM_METRIC_COLLECTIONS for collection in collections)
