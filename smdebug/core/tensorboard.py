"""TensorBoard files of a run: scalars and histograms, one file a step and mode, with true checksums."""

from __future__ import annotations

import os
import re
import socket
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug.core import protobuf
from smdebug.core.collection_keys import SCALAR_COLLECTIONS
from smdebug.core.locations import TENSORBOARD_DIR, get_tensorboard_path
from smdebug.core.output import open_output
from smdebug.core.tfevent import encode_event_fields, encode_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from smdebug.core.collection import Collection
    from smdebug.core.modes import ModeKeys
    from smdebug.core.output import Output

_UNCLEAN = re.compile(r"[^-/\w.]")


def _make_bin_edges() -> NDArray[np.float64]:
    """Edges of TensorBoard's bins: 0 and +-1e-12 * 1.1^k below 1e20."""
    count = int(np.ceil(np.log(1e32) / np.log(1.1)))
    positive = 1e-12 * 1.1 ** np.arange(count)
    positive = positive[positive < 1e20]
    return np.concatenate((-positive[::-1], [0.0], positive))


_BIN_EDGES = _make_bin_edges()


def get_tensorboard_dir(out_dir: str, export_tensorboard: bool, tensorboard_dir: str | None) -> str | None:
    """Return where TensorBoard files go; None for nowhere."""
    if tensorboard_dir:
        return str(tensorboard_dir)
    return f"{out_dir.rstrip('/')}/{TENSORBOARD_DIR}" if export_tensorboard else None


def clean_tag(tag: str) -> str:
    """Return the tag as TensorBoard takes it."""
    return _UNCLEAN.sub("_", tag).lstrip("/")


def encode_histogram(array: NDArray[Any], bins: str | int | Sequence[float] = "default") -> bytes:
    """Encode the HistogramProto of all finite elements.

    Args:
        array: of numbers.
        bins: `default` for TensorBoard's own; else how many, their edges, or the name of a way to choose them, as
            `numpy.histogram` takes them.

    Raises:
        ValueError: numpy knows no such bins.
    """
    values = array.astype(np.float64).reshape(-1)
    values = values[np.isfinite(values)]
    is_default = isinstance(bins, str) and bins == "default"
    counts, edges = np.histogram(values, bins=_BIN_EDGES if is_default else bins)
    filled = np.flatnonzero(counts)
    limits, numbers = [edges[-1]], [0.0]
    if filled.size:
        kept = slice(filled[0], filled[-1] + 1)
        limits, numbers = edges[1:][kept].tolist(), counts[kept].astype(np.float64).tolist()
    # Sums of very large numbers are infinite, and the training need not be warned of that.
    with np.errstate(over="ignore"):
        facts = (
            values.min() if values.size else 0.0,
            values.max() if values.size else 0.0,
            values.size,
            values.sum(),
            np.square(values).sum(),
        )
    head = b"".join(protobuf.encode_double(field, float(fact)) for field, fact in enumerate(facts, start=1))
    return head + protobuf.encode_doubles(6, limits) + protobuf.encode_doubles(7, numbers)


class TensorboardWriter:
    """Writes the summaries of one step at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.rstrip("/")
        self._output: Output | None = None
        self._target: tuple[str, int] | None = None
        self._last_target: tuple[str, int] | None = None

    def add_tensor(
        self, name: str, array: NDArray[Any], collections: Iterable[Collection], mode: ModeKeys, step: int
    ) -> None:
        """Write a number of a scalar collection as a scalar, others as histograms where their collections say so."""
        for collection in collections:
            if collection.name in SCALAR_COLLECTIONS:
                if array.size == 1:
                    self.add_scalar(name, float(array.reshape(()).astype(np.float64)), mode, step)
            elif collection.save_histogram and array.size and array.dtype.kind in "iuf":
                value = protobuf.encode_bytes(1, clean_tag(f"{collection.name}/{name}").encode())
                self._write(value + protobuf.encode_bytes(5, encode_histogram(array)), mode, step)

    def add_scalar(self, name: str, number: float, mode: ModeKeys, step: int) -> None:
        """Write one number."""
        value = protobuf.encode_bytes(1, clean_tag(name).encode()) + protobuf.encode_float(2, number)
        self._write(value, mode, step)

    def close(self) -> None:
        """Make the step's file visible."""
        if self._output:
            output, self._output = self._output, None
            self._last_target, self._target = self._target, None
            output.commit()

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the file that the parent has open."""
        self._output = self._target = None

    def _write(self, value: bytes, mode: ModeKeys, step: int) -> None:
        target = (mode.name, step)
        if self._target != target:
            self.close()
            path = get_tensorboard_path(mode.name, step, os.getpid(), socket.gethostname())
            # What comes for a step that was over is added to its file.
            self._output = open_output(f"{self._folder}/{path}", append=target == self._last_target)
            self._target = target
        assert self._output
        summary = protobuf.encode_bytes(5, protobuf.encode_bytes(1, value))
        self._output.write([encode_record(encode_event_fields(time.time(), step) + summary, real_checksum=True)])
