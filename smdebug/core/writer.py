"""FileWriter: a step written by hand, outside any hook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug.core.arrays import get_content, get_texts, make_numpy_array
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import get_numpy_reduction, get_reduction_tensor_name
from smdebug.core.step_writer import StepWriter
from smdebug.core.tfevent import DATA_TYPE_NUMBERS, get_dtype_name, get_storable_array
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from numpy.typing import NDArray

    from smdebug.core.saving_plan import Selection


def write_value(writer: StepWriter, name: str, value: object) -> None:
    """Append anything that can be made an array of; errors as `make_numpy_array` and the record format raise them."""
    array = make_numpy_array(value)
    texts = get_texts(array)
    if texts is not None:
        writer.add_text(name, texts)
        return
    storable, true_dtype = get_storable_array(array)
    data_type = DATA_TYPE_NUMBERS[get_dtype_name(storable.dtype)]
    writer.add_tensor(name, data_type, storable.shape, get_content(storable), true_dtype)


def write_selected(writer: StepWriter, name: str, array: NDArray[Any], selection: Selection) -> None:
    """Append what is selected of one array: its values, its shape, numbers computed by numpy."""
    if selection.raw:
        write_value(writer, name, array)
    if selection.shape:
        writer.add_shape(name, array.shape)
    if array.dtype.kind in "biufc":
        for operation, is_abs in selection.operations:
            number = np.asarray(get_numpy_reduction(operation, array, is_abs))
            write_value(writer, get_reduction_tensor_name(name, operation, is_abs), number)


class FileWriter:
    """Writes the event and index file of one step of one worker; a context manager that closes them."""

    def __init__(
        self,
        trial_dir: str,
        worker: str,
        step: int = 0,
        wtype: str = "events",
        mode: ModeKeys = ModeKeys.GLOBAL,
        **_buffering: Any,
    ) -> None:
        """Take the run's folder or `s3://` prefix, the worker as it stands in file names, and the global step.

        Queue sizes and flush intervals that smdebug's own writer takes are accepted and mean nothing here.

        Raises:
            SMDebugValueError: a writer type other than events, or a mode that is none.
        """
        if wtype != "events":
            raise SMDebugValueError(f"A FileWriter writes events, not {wtype!r}.")
        self._step = step
        self._mode = _check_mode(mode)
        self._writer = StepWriter(str(trial_dir), worker, step, self._mode)

    def write_tensor(
        self,
        tdata: object,
        tname: str,
        write_index: bool = True,  # noqa: ARG002 - part of the signature: a tensor that no index names cannot be read
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Append a tensor; mode None means GLOBAL, mode step None the global step, timestamp None now."""
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
        """Note the shape of a tensor."""
        self._stamp(mode, mode_step)
        self._writer.add_shape(name, tuple(shape), original_name)

    def _stamp(self, mode: ModeKeys | None, mode_step: int | None) -> tuple[ModeKeys, int]:
        checked = _check_mode(ModeKeys.GLOBAL if mode is None else mode)
        number = self._step if mode_step is None else mode_step
        # A file has one mode: that of what was written to it first.
        if self._writer.is_empty:
            self._writer.mode, self._writer.mode_step = checked, number
        return checked, number

    def name(self) -> str:
        """Return the path of the event file; SMDebugRuntimeError before the first write."""
        if self._writer.is_empty:
            raise SMDebugRuntimeError("This writer has no event file yet: write a tensor first.")
        return self._writer.event_path

    def flush(self) -> None:
        """Hand what was written to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Make the step visible."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_mode(mode: object) -> ModeKeys:
    if not isinstance(mode, ModeKeys):
        raise SMDebugValueError(f"A mode is one of ModeKeys, not {mode!r}.")
    return mode
