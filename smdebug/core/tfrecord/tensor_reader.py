"""Tensors in bytes of an event file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.core.tfevent import read_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from smdebug.core.modes import ModeKeys

__all__ = ["TensorReader"]


class TensorReader:
    """Reads the tensors of an event file, or of a part of one that begins and ends with a record."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes."""
        self._data = data

    def read_tensors(self) -> Iterator[tuple[str, int, NDArray[Any], ModeKeys | None, int | None]]:
        """Yield (name, global step, read-only array, mode, mode step) of each tensor.

        Raises:
            SMDebugValueError: a record is cut or damaged.
        """
        for event in read_events(self._data):
            for value in event.values:
                if value.tensor is not None:
                    yield value.tag, event.step, value.tensor, value.mode, value.mode_step
