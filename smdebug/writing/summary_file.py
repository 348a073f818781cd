"""TensorBoard summary file: scalars, histograms and encoded messages."""

import os
import re
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.format import protobuf
from smdebug.format.locations import get_tensorboard_path
from smdebug.format.tfevent.encoding import encode_event_fields
from smdebug.format.tfevent.framing import encode_record
from smdebug.storage.output import Output, open_output

# Fields of Event and of a summary's value.
_GRAPH, _SUMMARY = 4, 5
_TAG, _NUMBER, _HISTOGRAM = 1, 2, 5
_UNCLEAN = re.compile(r"[^-/\w.]")


def _make_bin_edges() -> NDArray[np.float64]:
    """Compute the edges of TensorBoard's bins: 0 and +-1e-12 * 1.1^k below 1e20."""
    count = int(np.ceil(np.log(1e32) / np.log(1.1)))
    positive = 1e-12 * 1.1 ** np.arange(count)
    positive = positive[positive < 1e20]
    return np.concatenate((-positive[::-1], [0.0], positive))


_BIN_EDGES = _make_bin_edges()


def encode_histogram(array: NDArray[Any], bins: str | int | Sequence[float] = "default") -> bytes:
    """Encode the HistogramProto of all finite elements.

    Args:
        array: array of numbers.
        bins: `default` for TensorBoard's bins; else the number of bins, their edges, or the name of a method, as in
            `numpy.histogram`.

    Raises:
        ValueError: numpy refuses the bins.
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
    # Sums of very large numbers overflow to infinity; numpy's warning would only disturb the training.
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


class SummaryFile:
    """A file `<folder>/<MODE>/<step>_<pid>_<host>.tfevents` with valid checksums, visible once it is closed.

    Attributes:
        path: path of the file, which may not exist yet.
        is_empty: whether nothing has been written.
    """

    def __init__(self, folder: str, mode_name: str, step: int) -> None:
        """Initialize with the TensorBoard folder or `s3://` prefix, and the mode and global step of the file's name."""
        self.path = f"{folder.rstrip('/')}/{get_tensorboard_path(mode_name, step, os.getpid(), socket.gethostname())}"
        self.is_empty = True
        self._output: Output | None = None

    def add_number(self, name: str, number: float, step: int, timestamp: float | None = None) -> None:
        """Write one number; `timestamp` is in seconds since the epoch, None for the current time."""
        self._add_value(
            protobuf.encode_bytes(_TAG, _tag(name)) + protobuf.encode_float(_NUMBER, number), step, timestamp
        )

    def add_histogram(
        self, name: str, array: NDArray[Any], step: int, bins: str | int | Sequence[float] = "default"
    ) -> None:
        """Write a histogram of the finite numbers of an array; `bins` as in `encode_histogram`."""
        histogram = protobuf.encode_bytes(_HISTOGRAM, encode_histogram(array, bins))
        self._add_value(protobuf.encode_bytes(_TAG, _tag(name)) + histogram, step, None)

    def add_summary(self, summary: bytes, step: int, timestamp: float | None = None) -> None:
        """Write an encoded Summary."""
        self._add(protobuf.encode_bytes(_SUMMARY, summary), step, timestamp)

    def add_graph(self, graph: bytes) -> None:
        """Write an encoded GraphDef."""
        self._add(protobuf.encode_bytes(_GRAPH, graph), 0, None)

    def close(self) -> None:
        """Make the written records visible."""
        if self._output:
            output, self._output = self._output, None
            output.commit()

    def _add_value(self, value: bytes, step: int, timestamp: float | None) -> None:
        self.add_summary(protobuf.encode_bytes(1, value), step, timestamp)

    def _add(self, content: bytes, step: int, timestamp: float | None) -> None:
        if self._output is None:
            self._output = open_output(self.path, append=not self.is_empty)
            self.is_empty = False
        fields = encode_event_fields(time.time() if timestamp is None else timestamp, step)
        self._output.write([encode_record(fields + content, real_checksum=True)])


def _tag(name: str) -> bytes:
    # TensorBoard accepts only these characters.
    return _UNCLEAN.sub("_", name).lstrip("/").encode()
