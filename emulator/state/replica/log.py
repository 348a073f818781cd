"""Replication log: numbered, immutable entries in a bucket.

An entry is one object, so its changes to all databases and files exist in whole or not at all. Entries are only ever
created: if two emulators both act as the writer, one finds its number taken. From time to time an entry is a
snapshot, which lists the content of every file, and the entries before it are no longer needed. ::

    log/0000000017          an entry: a line of JSON, and the bytes that it speaks of, compressed
    chunks/RUN/SHA256       a piece of a file that snapshots name, or a pack of small objects, compressed
    objects/AB/NAME         a large object of the emulator's own S3, under the name that its file has there
    lease.json              who writes
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.database import Piece

FOLDER = "log"
_FORMAT, _VERSION = "smdebug-emulator replica", 1
_DIGITS = 10

Pack: TypeAlias = "tuple[int, Mapping[str, tuple[int, int]]]"
"""A pack's size, and the position of each object file in it: offset and length by file name."""
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log.

    Attributes:
        state: id of the state, the same in all entries.
        folder: id of the state folder whose emulator wrote it.
        run: id of the process that wrote it.
        base: number of the snapshot that it builds upon; its own number if it is a snapshot.
        snapshot: the keys of each file's chunks, in order; None if it is not a snapshot.
        packs: packs of small objects in a snapshot, by their chunks' keys.
        pieces: data appended to the write-ahead logs of databases, in order, by the databases' paths.
        files: the new contents of files, by path.
        removed: paths of removed files.
    """

    state: str
    folder: str
    run: str
    base: int
    snapshot: Mapping[str, Sequence[str]] | None = None
    pieces: Sequence[tuple[str, Piece]] = ()
    packs: Mapping[str, Pack] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    removed: Sequence[str] = ()

    def encode(self) -> bytes:
        """Encode the entry as bytes."""
        head: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "state": self.state,
            "folder": self.folder,
            "run": self.run,
            "base": self.base,
            "snapshot": self.snapshot,
            "packs": self.packs,
            "pieces": [(path, piece.offset, len(piece.content)) for path, piece in self.pieces],
            "files": [(path, len(content)) for path, content in self.files.items()],
            "removed": list(self.removed),
        }
        parts = [json.dumps(head).encode(), b"\n", *(piece.content for _, piece in self.pieces), *self.files.values()]
        return zlib.compress(b"".join(parts), _LEVEL)


def read_entry(bucket: Bucket, number: int) -> Entry:
    """Read an entry.

    Raises:
        BucketError: the entry is missing, invalid, or of another version.
    """
    key = name_entry(number)
    try:
        line, _, content = zlib.decompress(bucket.get(key)).partition(b"\n")
        head = json.loads(line)
        known = head.pop("format"), head.pop("version")
    except (ValueError, KeyError, AttributeError, zlib.error) as error:
        raise BucketError(
            f"{bucket}: {key} was not written by an emulator ({error!r}): name another --s3-bucket."
        ) from error
    if known != (_FORMAT, _VERSION):
        raise BucketError(
            f"{bucket} was written by another version of the emulator ({known[0]} {known[1]}, this one reads "
            f"{_VERSION}): start that one, or name another bucket or prefix with --s3-bucket."
        )
    view, at = memoryview(content), 0

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        return bytes(view[at - size : at])

    head["pieces"] = [(path, Piece(offset, take(size))) for path, offset, size in head["pieces"]]
    head["files"] = {path: take(size) for path, size in head["files"]}
    return Entry(**head)


def name_entry(number: int) -> str:
    """Return the key of an entry."""
    return f"{FOLDER}/{number:0{_DIGITS}d}"


def list_entries(bucket: Bucket) -> list[int]:
    """List the numbers of the existing entries.

    Raises:
        BucketError: they could not be listed.
    """
    return sorted(int(name) for name in bucket.list(FOLDER) if name.isdecimal())


def list_named_chunks(snapshot: Entry) -> set[str]:
    """List the keys of the chunks that a snapshot names."""
    return {*snapshot.packs, *(key for keys in (snapshot.snapshot or {}).values() for key in keys)}
