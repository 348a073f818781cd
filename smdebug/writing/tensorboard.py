"""TensorBoard files of a run: scalars and histograms, by step and mode.

Each step and mode has its own file, with valid checksums.
"""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import SCALAR_COLLECTIONS, Collection
from smdebug.format.locations import TENSORBOARD_DIR
from smdebug.mode_keys import ModeKeys
from smdebug.storage.s3 import get_path_text
from smdebug.writing.summary_file import SummaryFile


def get_tensorboard_dir(
    out_dir: str, export_tensorboard: bool, tensorboard_dir: str | os.PathLike[str] | None
) -> str | None:
    """Return the folder or `s3://` prefix of TensorBoard files; None to write none."""
    if tensorboard_dir:
        return get_path_text(tensorboard_dir)
    return f"{out_dir.rstrip('/')}/{TENSORBOARD_DIR}" if export_tensorboard else None


class TensorboardWriter:
    """Writes the summaries of one step at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._target: tuple[ModeKeys, int] | None = None
        self._file: SummaryFile | None = None

    def add_tensor(
        self, name: str, array: NDArray[Any], collections: Iterable[Collection], mode: ModeKeys, step: int
    ) -> None:
        """Write numbers of scalar collections as scalars, and other tensors as histograms if a collection wants it."""
        for collection in collections:
            if collection.name in SCALAR_COLLECTIONS:
                if array.size == 1:
                    self.add_scalar(name, float(array.reshape(()).astype(np.float64)), mode, step)
            elif collection.save_histogram and array.size and array.dtype.kind in "iuf":
                self._get_file(mode, step).add_histogram(f"{collection.name}/{name}", array, step)

    def add_scalar(self, name: str, number: float, mode: ModeKeys, step: int) -> None:
        """Write one number."""
        self._get_file(mode, step).add_number(name, number, step)

    def add_graph(self, graph: bytes, mode: ModeKeys, step: int) -> None:
        """Write an encoded GraphDef."""
        self._get_file(mode, step).add_graph(graph)

    def close(self) -> None:
        """Make the step's file visible; later values of the step are added to it."""
        if self._file is not None:
            self._file.close()

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the file that the parent has open."""
        self._target = self._file = None

    def _get_file(self, mode: ModeKeys, step: int) -> SummaryFile:
        if self._file is None or self._target != (mode, step):
            self.close()
            self._target = (mode, step)
            self._file = SummaryFile(self._folder, mode.name, step)
        return self._file
