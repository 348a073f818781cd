"""FileWriter: steps written by hand, outside any hook."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.format.arguments import check_mode, make_numpy_array
from smdebug.format.locations import serialize_tf_device
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.storage.s3 import get_path_text
from smdebug.writing.selected_tensor import write_value
from smdebug.writing.step_writer import StepWriter
from smdebug.writing.summary_file import SummaryFile

if TYPE_CHECKING:
    from typing import Self


class FileWriter:
    """Writes the event and index file of one step of one worker; as a context manager, it closes them.

    With `wtype="tensorboard"`, it writes a TensorBoard file of summaries instead, without tensors and without an index.
    """

    def __init__(
        self,
        trial_dir: str | os.PathLike[str],
        worker: str,
        step: int = 0,
        wtype: str = "events",
        mode: ModeKeys = ModeKeys.GLOBAL,
        **_buffering: Any,
    ) -> None:
        """Initialize with the folder or `s3://` prefix of the run or of TensorBoard, the worker and the global step.

        The queue sizes and flush intervals of upstream's writer are accepted and ignored.

        Raises:
            SMDebugValueError: `wtype` is neither events nor tensorboard, or `mode` is not a mode.
        """
        if wtype not in ("events", "tensorboard"):
            raise SMDebugValueError(f"A FileWriter writes events or tensorboard, not {wtype!r}.")
        self._step = step
        self._mode = check_mode(mode)
        self._is_of_run = wtype == "events"
        folder = get_path_text(trial_dir)
        self._writer = StepWriter(folder, serialize_tf_device(worker), step, self._mode)
        self._summaries = SummaryFile(folder, self._mode.name, step)

    def write_tensor(
        self,
        tdata: object,
        tname: str,
        write_index: bool = True,  # noqa: ARG002 - part of the signature: a tensor that no index names cannot be read
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Append a tensor.

        Args:
            tdata: any value that can be converted to an array.
            tname: name of the tensor.
            write_index: not used.
            mode: mode of the step; None means GLOBAL.
            mode_step: step of that mode; None means the global step.
            timestamp: seconds since the epoch; None for the current time.

        Raises:
            SMDebugValueError: this writer is of type tensorboard.
        """
        self._check_type(is_of_run=True)
        checked, number = self._stamp(mode, mode_step)
        self._writer.stamp(checked, number, timestamp)
        write_value(self._writer, tname, tdata)

    def write_shape(
        self,
        name: str,
        shape: tuple[int, ...],
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        original_name: str | None = None,
    ) -> None:
        """Add the shape of a tensor to the index; raises the errors of `write_tensor`."""
        self._check_type(is_of_run=True)
        self._stamp(mode, mode_step)
        self._writer.add_shape(name, tuple(shape), original_name)

    def write_scalar_summary(self, name: str, value: float, global_step: int, timestamp: float | None = None) -> None:
        """Append a number for TensorBoard; `timestamp` is in seconds since the epoch, None for the current time.

        Raises:
            SMDebugValueError: this writer is of type events.
        """
        self._check_type(is_of_run=False)
        self._summaries.add_number(name, float(np.asarray(value).reshape(())), global_step, timestamp)

    def write_histogram_summary(
        self, tdata: object, tname: str, global_step: int, bins: str | int | Sequence[float] = "default"
    ) -> None:
        """Append a histogram of a tensor's finite numbers for TensorBoard; a ValueError is logged and not raised.

        Args:
            tdata: any value that can be converted to an array of numbers.
            tname: name of the tensor.
            global_step: step that TensorBoard shows.
            bins: `default` for TensorBoard's bins; else the number of bins, their edges, or the name of a numpy method.

        Raises:
            SMDebugValueError: this writer is of type events.
        """
        self._check_type(is_of_run=False)
        try:
            self._summaries.add_histogram(tname, make_numpy_array(tdata), global_step, bins)
        except ValueError as error:
            get_logger().warning("No histogram of %s is written at step %d: %s", tname, global_step, error)

    def write_summary(self, summ: Any, global_step: int, timestamp: float | None = None) -> None:
        """Append a Summary for TensorBoard, as message or bytes; raises the errors of `write_scalar_summary`."""
        self._check_type(is_of_run=False)
        self._summaries.add_summary(_encode(summ), global_step, timestamp)

    def write_graph(self, graph: Any) -> None:
        """Append a GraphDef for TensorBoard, as message or bytes; raises the errors of `write_scalar_summary`."""
        self._check_type(is_of_run=False)
        self._summaries.add_graph(_encode(graph))

    def _check_type(self, *, is_of_run: bool) -> None:
        if is_of_run != self._is_of_run:
            kinds = ("tensors and shapes", "events") if is_of_run else ("summaries and graphs", "tensorboard")
            raise SMDebugValueError(f"For {kinds[0]} make a FileWriter with wtype={kinds[1]!r}.")

    def _stamp(self, mode: ModeKeys | None, mode_step: int | None) -> tuple[ModeKeys, int]:
        checked = check_mode(ModeKeys.GLOBAL if mode is None else mode)
        number = self._step if mode_step is None else mode_step
        # A file has one mode: that of the first tensor or shape.
        if self._writer.is_empty:
            self._writer.mode, self._writer.mode_step = checked, number
        return checked, number

    def name(self) -> str:
        """Return the path of the event file; raises SMDebugRuntimeError before the first write."""
        if self._writer.is_empty and self._summaries.is_empty:
            raise SMDebugRuntimeError("This writer has no event file yet: write a tensor or a summary first.")
        return self._writer.event_path if self._is_of_run else self._summaries.path

    def flush(self) -> None:
        """Pass the written records to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Make the written records visible."""
        self._writer.close()
        self._summaries.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _encode(message: Any) -> bytes:
    return bytes(message) if isinstance(message, (bytes, bytearray, memoryview)) else message.SerializeToString()
