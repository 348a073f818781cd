"""The form of an index file: files of one layout differ in their heads and their checksums, and in nothing else.

Parsing what a step of 500 tensors says takes more than a millisecond; seeing that all but the checksums stands as it
stood at a step before takes a tenth of that.
"""

import json
import re

from smdebug.mode_keys import ModeKeys
from smdebug.reading.step_index import Layout, StepIndex

# As hooks of ours write it. Within a name there is a backslash before the second quote.
_CHECKSUM = re.compile(rb'"crc32c": (\d+)')
_MAX_CHECKSUM = 2**32 - 1
# Each takes as much memory as an index file; a run has few layouts, or one a step and gains nothing.
_MOST_FORMS = 16
_BODY = b', "tensor_payload": ['

_Head = tuple[ModeKeys, int, str]


class IndexForms:
    """The layouts that index files of a run had so far, by what stands in the files."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}

    def read(self, content: bytes) -> StepIndex | None:
        """Return what an index file says; None where none of its form was learned, and it has to be parsed."""
        head, form, checksums = _take_apart(content)
        layout = self._layouts.get(form)
        if layout is None or head is None:
            return None
        mode, mode_step, event_file_name = head
        return StepIndex(layout, mode, mode_step, event_file_name, checksums)

    def learn(self, content: bytes, index: StepIndex) -> None:
        """Learn the form of an index file.

        Args:
            content: what stands in it.
            index: what that says.
        """
        head, form, checksums = _take_apart(content)
        # Each record with its checksum, and nothing that a later key of the same name takes back.
        if head == (index.mode, index.mode_step, index.event_file_name) and len(checksums) == len(index.layout.records):
            if len(self._layouts) == _MOST_FORMS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[form] = index.layout


def _take_apart(content: bytes) -> tuple[_Head | None, bytes, list[int]]:
    """Return what the head says, None where it is not as expected; the rest without its checksums; the checksums."""
    head, found, body = content.partition(_BODY)
    texts = _CHECKSUM.split(body)
    try:
        checksums = list(map(int, texts[1::2]))
        parsed = json.loads(head + b"}") if found and max(checksums, default=0) <= _MAX_CHECKSUM else {}
        meta = parsed["meta"]
        name = meta["event_file_name"]
        if len(parsed) > 1 or not isinstance(name, str) or "\0" in name:
            return None, b"", []
        # JSON holds no zero byte, so that no two files have this in common which differ in more than checksums.
        return (ModeKeys[meta["mode"]], int(meta["mode_step"]), name), b"\0".join(texts[::2]), checksums
    except (ValueError, LookupError, TypeError, RecursionError):
        return None, b"", []  # whoever parses the file says what is wrong with it
