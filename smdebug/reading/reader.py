"""A reader of whole event files, without a run or an index."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError
from smdebug.format.tfevent.decoding import Event, decode_event
from smdebug.format.tfevent.framing import CHECKSUM_MAGIC_BYTES, get_footer, masked_crc32c, read_record
from smdebug.mode_keys import ModeKeys

_CONSTANT_CHECKSUM = masked_crc32c(CHECKSUM_MAGIC_BYTES)


class FileReader:
    """Reads all records of a local event file.

    Args:
        fname: path of the file.
        wtype: always `tfevent`.
    """

    def __init__(self, fname: str | Path, wtype: str = "tfevent") -> None:
        if wtype != "tfevent":
            raise SMDebugValueError(f"wtype must be 'tfevent', not {wtype!r}.")
        self._path = Path(fname)

    def read_tensors(
        self, check: bool | str = "minimal"
    ) -> Iterator[tuple[str, int, NDArray[Any], ModeKeys | None, int | None]]:
        """Yield (name, global step, value, mode, mode step) of each tensor.

        Args:
            check: `minimal` or True: each record's footer must be smdebug's constant; `full`: it must be the checksum
                of the payload; anything else: it is not checked.

        Raises:
            SMDebugValueError: a record is truncated or damaged, or the check of its footer fails.
        """
        for event in self._read(check):
            for value in event.values:
                if value.tensor is not None:
                    yield value.tag, event.step, value.tensor, value.mode, value.mode_step

    def read_events(
        self, check: bool | str = "minimal", regex_list: str | Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return timestamp, step, name and value of each tensor, and of each number in a TensorBoard file.

        Timestamps are seconds since the epoch.

        Args:
            check: as in `read_tensors`; TensorBoard's files need `full`.
            regex_list: only names that match one of these.

        Raises:
            SMDebugValueError: a record is truncated or damaged, or the check of its footer fails.
        """
        patterns = [regex_list] if isinstance(regex_list, str) else regex_list
        return [
            {
                "timestamp": event.wall_time,
                "step": event.step,
                "name": value.tag,
                "value": value.simple_value if value.tensor is None else value.tensor,
            }
            for event in self._read(check)
            for value in event.values
            if (value.tensor is not None or value.simple_value is not None)
            and (patterns is None or any(re.search(pattern, value.tag) for pattern in patterns))
        ]

    def _read(self, check: bool | str) -> Iterator[Event]:
        content = memoryview(self._path.read_bytes())
        offset = 0
        while offset < len(content):
            payload, end = read_record(content, offset)
            if not _has_expected_footer(payload, get_footer(content, end), check):
                raise SMDebugValueError(f"{self._path}: the record at byte {offset} does not match its checksum.")
            yield decode_event(payload)
            offset = end


def _has_expected_footer(payload: memoryview, footer: int, check: bool | str) -> bool:
    if check is True or check == "minimal":
        return footer == _CONSTANT_CHECKSUM
    return check != "full" or footer == masked_crc32c(payload)
