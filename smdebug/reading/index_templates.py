"""Templates of index files, which differ only in header and checksums.

Parsing the index file of a step with 500 tensors takes more than a millisecond; recognising that all but the checksums
equals an earlier file takes a tenth of that.
"""

import json
import re

from smdebug.mode_keys import ModeKeys
from smdebug.reading.step_index import Layout, StepIndex

# As our hooks write it. A quote inside a tensor name is escaped, so that no name matches.
_CHECKSUM = re.compile(rb'"crc32c": (\d+)')
_MAX_CHECKSUM = 2**32 - 1
# A template takes as much memory as an index file. A run has few layouts, or a new one each step and gains nothing.
_MOST_TEMPLATES = 16
_BODY = b', "tensor_payload": ['

_Head = tuple[ModeKeys, int, str]


class IndexTemplates:
    """The layouts of the index files that a run had so far, by their content without header and checksums."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}

    def read(self, content: bytes) -> StepIndex | None:
        """Return the parsed index file; None if it matches no template, and has to be parsed."""
        head, template, checksums = _split(content)
        layout = self._layouts.get(template)
        if layout is None or head is None:
            return None
        mode, mode_step, event_file_name = head
        return StepIndex(layout, mode, mode_step, event_file_name, checksums)

    def learn(self, content: bytes, index: StepIndex) -> None:
        """Add the template of an index file.

        Args:
            content: the bytes of the file.
            index: the parsed file.
        """
        head, template, checksums = _split(content)
        # Only if every record has a checksum, and no key is repeated.
        if head == (index.mode, index.mode_step, index.event_file_name) and len(checksums) == len(index.layout.records):
            if len(self._layouts) == _MOST_TEMPLATES:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[template] = index.layout


def _split(content: bytes) -> tuple[_Head | None, bytes, list[int]]:
    """Return the header, None if it is not as expected; the rest without its checksums; the checksums."""
    head, found, body = content.partition(_BODY)
    texts = _CHECKSUM.split(body)
    try:
        checksums = list(map(int, texts[1::2]))
        parsed = json.loads(head + b"}") if found and max(checksums, default=0) <= _MAX_CHECKSUM else {}
        meta = parsed["meta"]
        name = meta["event_file_name"]
        if len(parsed) > 1 or not isinstance(name, str) or "\0" in name:
            return None, b"", []
        # JSON contains no zero byte, so that files with equal templates differ only in header and checksums.
        return (ModeKeys[meta["mode"]], int(meta["mode_step"]), name), b"\0".join(texts[::2]), checksums
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None, b"", []  # the parser reports what is wrong with it
