"""Replication log: numbered, immutable entries in a bucket.

An entry is one object, so it is there in whole or not at all, over all databases and files. It is only ever created:
of two emulators that both believe to be the writer, one finds its number taken. Every now and then an entry is a
snapshot, which names the content of every file, and those before it are garbage. ::

    log/0000000017          an entry: a line of JSON, and the bytes that it speaks of, compressed
    chunks/RUN/SHA256       a piece of a file that snapshots name, or a pack of small objects, compressed
    objects/AB/NAME         a large object of the emulator's own S3, under the name that its file has there
    lease.json              who writes
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.database import Piece

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "log"
_FORMAT, _VERSION = "smdebug-emulator replica", 1
_DIGITS = 10

Pack: TypeAlias = "tuple[int, Mapping[str, tuple[int, int]]]"
"""Its size, and where in it files of objects are, by their names: the first byte, and how many."""
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry.

    Attributes:
        state: id of the state, the same in all entries.
        folder: id of the state folder whose emulator wrote it.
        run: id of the process that wrote it.
        base: number of the snapshot that it builds upon; its own where it is one.
        snapshot: of every file its chunks' keys, in their order; None where it is no snapshot.
        packs: of a snapshot, those of small objects, by their chunks' keys.
        pieces: what the write-ahead logs of databases have more, by the databases' paths, in their order.
        files: what files have become, by their paths.
        removed: paths of files that are gone.
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
        """Write it down."""
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
        BucketError: it is not there, no entry, or of another version.
    """
    key = name_entry(number)
    try:
        line, _, content = zlib.decompress(bucket.get(key)).partition(b"\n")
        head = json.loads(line)
        known = head.pop("format"), head.pop("version")
    except (ValueError, KeyError, AttributeError, zlib.error) as error:
        raise BucketError(f"{bucket}: {key} is none of an emulator's ({error!r}): name another --s3-bucket.") from error
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
    """List the numbers of the entries that are there.

    Raises:
        BucketError: it could not be asked for.
    """
    return sorted(int(name) for name in bucket.list(FOLDER) if name.isdecimal())


def list_named_chunks(snapshot: Entry) -> set[str]:
    """List the keys of the chunks that a snapshot names."""
    return {*snapshot.packs, *(key for keys in (snapshot.snapshot or {}).values() for key in keys)}
