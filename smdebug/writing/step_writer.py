"""StepWriter: the event file and the index file of one worker's step."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from crc32c import crc32c

from smdebug.format.locations import get_event_path, get_index_path
from smdebug.format.tfevent.encoding import (
    Heads,
    encode_event_fields,
    encode_heads,
    encode_metadata,
    encode_padding,
    encode_string_heads,
)
from smdebug.format.tfevent.framing import (
    CONSTANT_FOOTER,
    FOOTER_BYTES,
    HEADER_BYTES,
    INDEX_CRC_KEY,
    INDEX_DTYPE_KEY,
    Buffer,
)
from smdebug.mode_keys import ModeKeys
from smdebug.moments import STEP, report_moment
from smdebug.storage.output import Output, open_output, withdraw_file, write_whole_file

# Smaller tensors are copied into a buffer and written together; the memory of others is written directly.
_DIRECT_BYTES = 64 * 1024
# From this size on, the content of a tensor begins at a multiple of the alignment, in bytes of the event file.
_ALIGNED_BYTES = 256 * 1024
_ALIGNMENT = 64
_FLUSH_BYTES = 1024 * 1024


# Maximum number of cached heads, of half a kilobyte each: a tensor may have a different shape at every step.
_MOST_HEADS = 65536


class HeadCache:
    """Cache of encoded record heads: names, types and shapes rarely change between steps."""

    def __init__(self) -> None:
        self._heads: dict[tuple[Any, ...], Heads] = {}
        self._quoted: dict[str, str] = {}

    def quote(self, name: str) -> str:
        """Return a tensor's name as a JSON string."""
        quoted = self._quoted.get(name)
        if quoted is None:
            quoted = self._quoted[name] = json.dumps(name)
        return quoted

    def get(
        self,
        name: str,
        data_type: int,
        shape: tuple[int, ...],
        content_bytes: int,
        event_bytes: int,
        metadata_bytes: int,
    ) -> Heads:
        """Return the heads of a record, encoded on first use."""
        key = (name, data_type, shape, event_bytes, metadata_bytes)
        heads = self._heads.get(key)
        if heads is None:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            heads = encode_heads(name, data_type, shape, content_bytes, event_bytes, metadata_bytes)
            self._heads[key] = heads
        return heads


class StepWriter:
    """Writes one step of one worker: records when they are added, the index when the step is closed.

    No file is created before the first tensor. `close` makes the event file visible first and the index last, so
    a reader that sees an index can read the tensors it lists.
    """

    def __init__(
        self,
        run_dir: str,
        worker: str,
        step: int,
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        heads: HeadCache | None = None,
    ) -> None:
        """Initialize with the run's folder or `s3://` prefix, the worker's name in file names, and the global step."""
        self.step = step
        self.mode = mode
        self.mode_step = step if mode_step is None else mode_step
        self.closed = False
        self._run_dir = run_dir.rstrip("/")
        self._worker = worker
        self._heads = HeadCache() if heads is None else heads
        self._event_name = get_event_path(step, worker)
        self._output: Output | None = None
        self._committed = False
        self._indexed = False
        self._offset = 0
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        # Entries of the index, as JSON.
        self._tensors: list[str] = []
        self._shapes: list[dict[str, Any]] = []
        self.stamp(mode, self.mode_step, None)

    def stamp(self, mode: ModeKeys, mode_step: int, timestamp: float | None) -> None:
        """Set mode, mode step and time (seconds since the epoch, None for the current time) of later records."""
        self._event_fields = encode_event_fields(time.time() if timestamp is None else timestamp, self.step)
        self._metadata = encode_metadata(mode, mode_step)

    @contextmanager
    def stamped(self, timestamp: float | None) -> Iterator[None]:
        """Give the records added within the block a time, in seconds since the epoch; None for the current time."""
        # The mode is that of the step: the training may have changed to a mode that has no step yet.
        self.stamp(self.mode, self.mode_step, timestamp)
        try:
            yield
        finally:
            self.stamp(self.mode, self.mode_step, None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written to this step."""
        return not self._tensors and not self._shapes

    @property
    def is_visible(self) -> bool:
        """Whether readers can see any part of this step."""
        return self._indexed

    @property
    def event_path(self) -> str:
        """The path of the event file, which may not exist yet."""
        return f"{self._run_dir}/{self._event_name}"

    def add_tensor(
        self, name: str, data_type: int, shape: tuple[int, ...], content: Buffer, true_dtype: str | None = None
    ) -> None:
        """Append a tensor; its memory may change after the call.

        Args:
            name: name of the tensor.
            data_type: number of the DataType of `content`.
            shape: size of each dimension.
            content: C-ordered little-endian bytes, as a one-dimensional buffer.
            true_dtype: name of the dtype before it was widened to `data_type`; None if it was not.
        """
        size = len(content)
        heads = self._heads.get(name, data_type, shape, size, len(self._event_fields), len(self._metadata))
        if size < _DIRECT_BYTES:
            record = b"".join(
                (heads.frame, self._event_fields, heads.value, self._metadata, heads.tensor, content, CONSTANT_FOOTER)
            )
            self._append(name, record, true_dtype)
            return
        metadata = self._metadata
        if size >= _ALIGNED_BYTES:
            # Readers map the file into memory, and can return arrays without a copy only if the content is aligned.
            metadata += encode_padding(0)
            event_bytes = len(self._event_fields)
            heads = self._heads.get(name, data_type, shape, size, event_bytes, len(metadata))
            content_start = self._offset + heads.length - size - FOOTER_BYTES
            metadata = self._metadata + encode_padding(-content_start % _ALIGNMENT)
            heads = self._heads.get(name, data_type, shape, size, event_bytes, len(metadata))
        head = b"".join((heads.frame, self._event_fields, heads.value, metadata, heads.tensor))
        checksum = crc32c(content, crc32c(memoryview(head)[HEADER_BYTES:]))
        self._add_entry(name, heads.length, checksum, true_dtype)
        self._pending += (head, content)
        self._flush()
        self._pending.append(CONSTANT_FOOTER)
        self._pending_bytes = FOOTER_BYTES

    def add_numbers(
        self,
        names: Sequence[str],
        data_type: int,
        content: memoryview,
        true_dtype: str | None = None,
        shape: tuple[int, ...] = (),
    ) -> None:
        """Append a tensor of one number for each name; `content` contains their bytes, in order.

        This is `add_tensor` for hundreds of reductions, with the work they have in common done once.
        """
        self._reopen()
        event_fields, metadata, quote = self._event_fields, self._metadata, self._heads.quote
        get_heads, lengths, join = self._heads.get, (len(event_fields), len(metadata)), b"".join
        size = len(content) // len(names)
        more = f', "{INDEX_DTYPE_KEY}": {json.dumps(true_dtype)}}}' if true_dtype else "}"
        offset, start = self._offset, 0
        records: list[bytes] = []
        for name in names:
            frame, value, tensor, length = get_heads(name, data_type, shape, size, *lengths)
            payload = join((event_fields, value, metadata, tensor, content[start : start + size]))
            records += (frame, payload, CONSTANT_FOOTER)
            self._tensors.append(
                f'{{"tensorname": {quote(name)}, "start_idx": {offset}, "length": {length}, '
                f'"{INDEX_CRC_KEY}": {crc32c(payload)}{more}'
            )
            offset += length
            start += size
        self._pending.append(join(records))
        self._pending_bytes += offset - self._offset
        self._offset = offset
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def add_text(self, name: str, texts: Sequence[str]) -> None:
        """Append a one-dimensional tensor of strings."""
        heads = encode_string_heads(name, texts, len(self._event_fields), len(self._metadata))
        parts = (heads.frame, self._event_fields, heads.value, self._metadata, heads.tensor, CONSTANT_FOOTER)
        self._append(name, b"".join(parts), None)

    def add_shape(self, name: str, shape: tuple[int, ...], original_name: str | None = None) -> None:
        """Add a tensor's shape, which is written to the index only."""
        self._reopen()
        entry = {"tensorname": name, "originalname": original_name or name, "shape": [int(size) for size in shape]}
        self._shapes.append(entry)

    def flush(self) -> None:
        """Pass all records to the operating system; readers still see nothing."""
        if self._pending:
            self._flush()

    def close(self) -> None:
        """Make the step visible: first the event file, then the index. A step without content writes nothing.

        If tensors are added after `close`, the next `close` writes all of the step again.
        """
        if self.closed:
            return
        self.closed = True
        if self.is_empty:
            return
        index_path = f"{self._run_dir}/{get_index_path(self.step, self._worker)}"
        if self._output or self._pending:
            self._flush()
            assert self._output
            if not self._committed:
                # A killed earlier job may have left an index, which must not be visible beside the new event file.
                withdraw_file(index_path)
            output, self._output = self._output, None
            output.commit()
            self._committed = True
        meta: dict[str, Any] = {"mode": self.mode.name, "mode_step": self.mode_step}
        if self._tensors:
            meta["event_file_name"] = self._event_name
        index = (
            f'{{"meta": {json.dumps(meta)}, "tensor_payload": [{", ".join(self._tensors)}], '
            f'"shape_payload": {json.dumps(self._shapes)}}}'
        )
        write_whole_file(index_path, [index.encode()])
        self._indexed = True
        report_moment(STEP)

    def abort(self) -> None:
        """Discard everything that is not visible yet."""
        self.closed = True
        self._pending.clear()
        if self._output:
            output, self._output = self._output, None
            output.abort()

    def _append(self, name: str, record: bytes, true_dtype: str | None) -> None:
        self._add_entry(name, len(record), crc32c(memoryview(record)[HEADER_BYTES:-FOOTER_BYTES]), true_dtype)
        self._pending.append(record)
        self._pending_bytes += len(record)
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def _add_entry(self, name: str, length: int, checksum: int, true_dtype: str | None) -> None:
        self._reopen()
        # Formatted manually: json takes as long for a few hundred entries as writing the tensors of a step.
        more = f', "{INDEX_DTYPE_KEY}": {json.dumps(true_dtype)}' if true_dtype else ""
        self._tensors.append(
            f'{{"tensorname": {self._heads.quote(name)}, "start_idx": {self._offset}, "length": {length}, '
            f'"{INDEX_CRC_KEY}": {checksum}{more}}}'
        )
        self._offset += length

    def _reopen(self) -> None:
        self.closed = False

    def _flush(self) -> None:
        if self._output is None:
            self._output = open_output(self.event_path, append=self._committed)
        self._output.write(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
