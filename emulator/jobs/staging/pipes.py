"""Channels in Pipe mode: named pipes /opt/ml/input/data/<channel>_<epoch>."""

from __future__ import annotations

import gzip
import json
import logging
import os
import select
import shutil
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from emulator.exceptions import NoSuchBucket, NoSuchKey
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.staging.channels import (
    encode_manifest_text,
    find_share,
    list_objects,
    parse_manifest_uri,
    reads_pipe,
    shuffle,
)
from emulator.jobs.staging.hosts import Host, list_receivers
from emulator.jobs.staging.s3_paths import parse_request_uri
from emulator.moto_services.s3.objects import ObjectStore, S3Uri

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 20
# How often to check a pipe that has no reader yet or is full.
_POLL_SECONDS = 0.05
# RecordIO, as MXNet defines it: a magic number, then a word. The upper three bits of the word identify the part of the
# record that follows, and the other bits hold its length.
_MAGIC = 0xCED7230A
_MAX_PART_BYTES = (1 << 29) - 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


def open_pipes(
    request: Mapping[str, Any], object_store: ObjectStore, folder: Path, host: Host, hosts: Sequence[Host]
) -> Iterator[ChannelPipe]:
    """Create the pipe of the first epoch for every channel that ``host`` gets in Pipe mode, one after another.

    Data is sent after ``ChannelPipe.start``.

    Args:
        request: the request of CreateTrainingJob, checked by ``check_training_job``.
        object_store: the S3 with the data.
        folder: the host's /opt/ml/input/data.
        host: the host that gets the channels.
        hosts: all hosts of the job.
    """
    for channel in request.get("InputDataConfig") or ():
        receivers = list_receivers(channel, hosts)
        if host in receivers and reads_pipe(channel, request):
            share = find_share(channel["DataSource"]["S3DataSource"], host, receivers)
            yield ChannelPipe(channel, object_store, folder, share)


class ChannelPipe:
    """One channel of one host. A thread writes one epoch after another, as long as the job reads them.

    Attributes:
        error: why the thread could not get the data; None if it could.
    """

    def __init__(self, channel: Mapping[str, Any], object_store: ObjectStore, folder: Path, share: slice) -> None:
        """Create the pipe of the first epoch.

        Raises:
            OSError: the file system has no pipes, or no more files.
        """
        self.error: Exception | None = None
        self._channel = channel
        self._name: str = channel["ChannelName"]
        self._object_store = object_store
        self._share = share
        # Next to /opt/ml, where no container can write.
        self._spool = folder.parents[1].with_name(f"pipe-{folder.parents[1].name}-{self._name}")
        # An open descriptor: if the job replaces the folder, nothing is written to the replacement.
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._stopped = Event()
        self._thread = Thread(target=self._run, name=f"pipe-{self._name}")
        self._on_error: Callable[[], None] = lambda: None
        try:
            self._make(0)
        except OSError:
            os.close(self._folder)
            raise

    def start(self, on_error: Callable[[], None]) -> None:
        """Start the thread. It calls ``on_error`` after it has set ``error``."""
        self._on_error = on_error
        self._thread.start()

    def stop(self) -> None:
        """End the thread. Idempotent."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _run(self) -> None:
        epoch = 0
        try:
            while (pipe := self._open(epoch)) is not None:
                # Created before the end of this epoch, because the script opens the next pipe immediately.
                self._make(epoch + 1)
                try:
                    with suppress(BrokenPipeError):  # the reader needs no more data of this epoch
                        for piece in self._list_pieces(epoch):
                            self._send_piece(pipe, piece)
                finally:
                    os.close(pipe)
                epoch += 1
        except _StoppedError:
            return
        except (RequestFailure, NoSuchBucket, NoSuchKey, OSError) as error:
            logger.warning("The pipe of the channel %s: %s", self._name, error)
            self.error = error
            self._on_error()

    def _make(self, epoch: int) -> None:
        with suppress(FileExistsError):
            os.mkfifo(f"{self._name}_{epoch}", 0o666, dir_fd=self._folder)

    def _open(self, epoch: int) -> int | None:
        """Wait until a reader opens the epoch's pipe, and open it for writing; return None after ``stop``."""
        while not self._stopped.wait(_POLL_SECONDS):
            try:
                pipe = os.open(
                    f"{self._name}_{epoch}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=self._folder
                )
            except OSError:
                continue  # there is no reader yet, or the job has replaced the pipe
            if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                return pipe
            os.close(pipe)
        return None

    def _list_pieces(self, epoch: int) -> Iterator[bytes | S3Uri]:
        """Yield the content of an epoch: objects, and the values that an augmented manifest itself contains."""
        source = self._channel["DataSource"]["S3DataSource"]
        if source["S3DataType"] != "AugmentedManifestFile":
            objects = shuffle(list_objects(source, self._object_store), self._channel, epoch)[self._share]
            yield from (parse_request_uri(f"s3://{bucket}/{key}", "S3Uri") for bucket, key, _ in objects)
            return
        uri = source["S3Uri"]
        location = parse_request_uri(uri, "S3Uri")
        lines = self._object_store.get(location.bucket, location.key).splitlines()
        for line in shuffle(lines, self._channel, epoch)[self._share]:
            if line.strip():
                yield from parse_augmented_line(line, source.get("AttributeNames") or (), uri)

    def _send_piece(self, pipe: int, piece: bytes | S3Uri) -> None:
        wrapped = self._channel.get("RecordWrapperType") == "RecordIO"
        if isinstance(piece, bytes):
            self._write(pipe, wrap_record(piece) if wrapped else piece)
            return
        try:
            self._object_store.download(piece.bucket, piece.key, self._spool)
            if self._channel.get("CompressionType") == "Gzip":
                unpacked = self._spool.with_name(f"{self._spool.name}-unpacked")
                try:
                    with gzip.open(self._spool) as packed, unpacked.open("wb") as file:
                        shutil.copyfileobj(packed, file, _CHUNK_BYTES)
                except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                    uri = f"s3://{piece.bucket}/{piece.key}"
                    raise RequestFailure(f"{uri} is no complete gzip file: {error}") from error
                unpacked.replace(self._spool)
            with self._spool.open("rb") as file:
                if wrapped:
                    size = os.fstat(file.fileno()).st_size
                    for header, length, padding in cut_record(size):
                        self._write(pipe, header)
                        for start in range(0, length, _CHUNK_BYTES):
                            self._write(pipe, file.read(min(_CHUNK_BYTES, length - start)))
                        self._write(pipe, padding)
                else:
                    while data := file.read(_CHUNK_BYTES):
                        self._write(pipe, data)
        finally:
            self._spool.unlink(missing_ok=True)

    def _write(self, pipe: int, data: bytes) -> None:
        view = memoryview(data)
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        while view:
            if self._stopped.is_set():
                raise _StoppedError
            if poll.poll(_POLL_SECONDS * 1000):
                with suppress(BlockingIOError):
                    view = view[os.write(pipe, view) :]


class _StoppedError(Exception):
    """The job ended while data was written to the pipe."""


def parse_augmented_line(line: bytes, names: Sequence[str], uri: str) -> list[bytes | S3Uri]:
    """Parse a line of an augmented manifest.

    Returns:
        For each attribute, its value. For an attribute ``…-ref``, the location of the object that it refers to.

    Raises:
        RequestFailure: the line is not a JSON object, or an attribute is missing.
    """
    try:
        values = json.loads(line)
    except ValueError as error:
        raise RequestFailure(f"A line of the augmented manifest {uri} is not JSON: {error}.") from error
    except RecursionError as error:
        raise RequestFailure(f"A line of the augmented manifest {uri} is nested too deeply: {line[:40]!r}….") from error
    if not isinstance(values, dict) or any(name not in values for name in names):
        raise RequestFailure(f"A line of the augmented manifest {uri} lacks one of {', '.join(names)}: {line[:200]!r}.")
    pieces: list[bytes | S3Uri] = []
    for name in names:
        value, where = values[name], f"{name} in the augmented manifest {uri}"
        if name.endswith("-ref"):
            pieces.append(parse_manifest_uri(str(value), where))
        else:
            pieces.append(encode_manifest_text(value if isinstance(value, str) else json.dumps(value), where))
    return pieces


def wrap_record(data: bytes) -> bytes:
    r"""Encode ``data`` as a RecordIO record.

    >>> wrap_record(b"abcde")
    b'\n#\xd7\xce\x05\x00\x00\x00abcde\x00\x00\x00'
    """
    parts, start = [], 0
    for header, length, padding in cut_record(len(data)):
        parts += [header, data[start : start + length], padding]
        start += length
    return b"".join(parts)


def cut_record(size: int) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield header, length and padding of each part of a record of ``size`` bytes. Below 512 MiB there is one part."""
    count = max(1, -(-size // _MAX_PART_BYTES))
    for number in range(count):
        length = min(_MAX_PART_BYTES, size - number * _MAX_PART_BYTES)
        flag = _WHOLE if count == 1 else _FIRST if number == 0 else _LAST if number == count - 1 else _MIDDLE
        yield struct.pack("<II", _MAGIC, flag << 29 | length), length, bytes(-length % 4)
