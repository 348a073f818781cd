"""Tensor upload during training: each index file after the files it names."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from emulator.exceptions import ObjectStoreError
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.staging.job_files import JobFolder, RefusedError
from emulator.jobs.staging.s3_paths import build_tensors_uri
from emulator.jobs.uploads.folder import (
    FileState,
    LiveUpload,
    join_key,
    put_file,
    put_object,
    put_objects,
    read_file,
    read_state,
    reporting_unreadable,
)
from emulator.moto_services.s3.objects import ObjectStore, S3Uri, parse_s3_uri

END_OF_JOB = "training_job_end.ts"
_INDEX = "index"
_EVENTS = "events"

# File systems stamp folders with a clock of some milliseconds: one that changed this recently may change again unseen.
_CLOCK_NS = 100_000_000
# A folder without a change for this long is looked at only once a second: a long run has tens of thousands of them.
_QUIET_NS = 3_000_000_000
_DEEP_PASS_SECONDS = 1.0
# From this size on, reading one file beside the upload of another pays for the threads.
_LARGE_BYTES = 4 << 20
_LARGE_UPLOADS = 3
# Small files become objects together, in one transaction, which others wait for some milliseconds at most.
_TOGETHER, _TOGETHER_BYTES = 32, 4 << 20


@dataclass(slots=True)
class _Folder:
    """What the last look at one folder found."""

    mtime_ns: int = -1
    settled: bool = False
    subfolders: set[str] = field(default_factory=set)
    # Those to look at in every pass; the others only in deep ones.
    awake: set[str] = field(default_factory=set)

    def is_quiet(self) -> bool:
        return self.settled and time.time_ns() - self.mtime_ns > _QUIET_NS


def is_end_announced(object_store: ObjectStore, uri: str) -> bool:
    """Return whether S3 has the end marker of a prefix."""
    with suppress(ValueError, ObjectStoreError):
        location = parse_s3_uri(uri)
        object_store.get(location.bucket, join_key(location.key, END_OF_JOB))
        return True
    return False


def announce_end(object_store: ObjectStore, destination: S3Uri) -> None:
    """Say in S3 that no more comes to a prefix; only after the last file of the last host is there.

    Raises:
        UploadError: it could not be stored.
    """
    put_object(object_store, b"", destination._replace(key=join_key(destination.key, END_OF_JOB)))


def has_saved_tensors(object_store: ObjectStore, job: TrainingJob) -> bool:
    """Whether S3 has any step of a job, in this or in an earlier attempt."""
    destination = parse_s3_uri(build_tensors_uri(job))
    prefix = f"{join_key(destination.key, _INDEX)}/"
    folders, objects, _ = object_store.list_level(destination.bucket, prefix, "", 1)
    return bool(folders or objects)


class StepOwners:
    """Which host's files of a step and worker are stored: those of the host that saved some first.

    The objects of two hosts that write as the same worker have the same keys. An event file of one and an index file
    of the other would be a step that nobody can read.
    """

    def __init__(self, on_shared: Callable[[str, str, str], None]) -> None:
        """Begin without any owner.

        Args:
            on_shared: called once, with the names of two hosts and of the worker as which both write.
        """
        self._owners: dict[str, str] = {}
        self._on_shared: Callable[[str, str, str], None] | None = on_shared

    def claim(self, host: str, name: str) -> bool:
        """Return whether a host's file of this name may be stored."""
        top, _, path = name.partition("/")
        if top not in (_EVENTS, _INDEX):
            return True
        stem = path.rpartition("/")[2].rpartition(".")[0]
        owner = self._owners.setdefault(stem, host)
        if owner != host and (on_shared := self._on_shared):
            self._on_shared = None
            on_shared(owner, host, stem.partition("_")[2])
        return owner == host


class TensorUpload(LiveUpload):
    """Uploads the tensors that one host saves.

    A pass lists ``index`` before everything else and uploads it after everything else. Writers put an event file in
    place before the index file that names it, so whoever sees an index in S3 can read what it names.
    """

    def __init__(
        self,
        folder: JobFolder,
        object_store: ObjectStore,
        destination: S3Uri,
        job_name: str,
        poll_seconds: float,
        claim: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        """Prepare to upload.

        Args:
            folder: the host's folder.
            object_store: S3 of the job's region.
            destination: prefix of the objects.
            job_name: for messages.
            poll_seconds: time between two passes.
            claim: returns whether the file of a name may be stored.
        """
        super().__init__(f"Tensors of {job_name}", f"tensor-upload-{job_name}", poll_seconds)
        self._folder = folder
        # Descriptor of the folder, during a pass.
        self._top = -1
        self.destination = destination
        self._object_store = object_store
        self._claim = claim
        self._folders: dict[str, _Folder] = {}
        self._uploaded: dict[str, FileState] = {}
        self._pending: dict[str, FileState] = {}
        self._next_deep_pass = 0.0

    def upload_new_files(self, *, everything: bool = False) -> int:
        """One pass; returns how many files it uploaded.

        Args:
            everything: look at every file, also where nothing seems to have changed.

        Raises:
            UploadError: the files that were not stored are tried again in the next pass.
        """
        now = time.monotonic()
        deep = everything or now >= self._next_deep_pass
        if deep:
            self._next_deep_pass = now + _DEEP_PASS_SECONDS
            if everything:
                self._folders.clear()
        with (
            reporting_unreadable(self._folder, self.destination),
            suppress(FileNotFoundError, RefusedError),
            self._folder.open() as top,
        ):
            self._top = top
            self._look_at(_INDEX, top, deep=deep)
            with suppress(FileNotFoundError, RefusedError), self._folder.open(_EVENTS, top) as events:
                for path in list(self._pending):
                    # A step's folder may be asleep, or be younger than the last look at its parent.
                    if path.startswith(_INDEX + "/"):
                        self._list(f"{_EVENTS}/{path.rsplit('/', 1)[1].split('_', 1)[0]}", events)
            self._look_at("", top, deep=deep)
            return self._upload_pending()
        return 0

    def _look_at(self, relative: str, parent: int, *, deep: bool) -> None:
        """List a folder and those below it, where they may have changed; ``parent``: descriptor of what it is in."""
        folder = self._list(relative, parent)
        names = (folder.subfolders if deep else folder.awake) - ({_INDEX} if not relative else set())
        if not names:
            return
        with suppress(FileNotFoundError, RefusedError), self._folder.open(relative, self._top) as descriptor:
            for name in names:
                subfolder = f"{relative}/{name}" if relative else name
                self._look_at(subfolder, descriptor, deep=deep)
                # A step's folder gets its files within moments; any other may get one at any time.
                if relative == _EVENTS and self._folders[subfolder].is_quiet():
                    folder.awake.discard(name)
                else:
                    folder.awake.add(name)

    def _list(self, relative: str, parent: int) -> _Folder:
        """Note a folder's new files as pending; nothing is read when the folder has not changed."""
        known = self._folders.get(relative)
        try:
            own_name = relative.rpartition("/")[2] or "."
            mtime_ns = os.stat(own_name, dir_fd=parent, follow_symlinks=False).st_mtime_ns
            if known is not None and known.settled and known.mtime_ns == mtime_ns:
                return known
            now_ns = time.time_ns()
            folder = _Folder(mtime_ns, now_ns - mtime_ns > _CLOCK_NS)
            with self._folder.open(relative, self._top) as descriptor, os.scandir(descriptor) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folder.subfolders.add(entry.name)
                        continue
                    name = f"{relative}/{entry.name}" if relative else entry.name
                    if _is_tensor_file(name):
                        self._note_file(name, entry)
        except (FileNotFoundError, RefusedError):
            return self._folders.setdefault(relative, _Folder())
        before = _Folder() if known is None else known
        folder.awake = (folder.subfolders - before.subfolders) | (folder.subfolders & before.awake)
        self._folders[relative] = folder
        return folder

    def _note_file(self, name: str, entry: os.DirEntry[str]) -> None:
        with suppress(FileNotFoundError):
            found = entry.stat(follow_symlinks=False)
            state = read_state(found)
            if state is None:
                self._folder.leave_out(name, found)
            elif state != self._uploaded.get(name) and self._claim(name):
                self._pending[name] = state

    def _upload_pending(self) -> int:
        if not self._pending:
            return 0
        names = sorted(self._pending, key=_upload_order)
        first_index = next((i for i, name in enumerate(names) if name.startswith(_INDEX + "/")), len(names))
        # An index must not overtake an event: the second group waits until the first is stored.
        return self._upload_group(names[:first_index]) + self._upload_group(names[first_index:])

    def _upload_group(self, names: list[str]) -> int:
        large = [name for name in names if self._pending[name].size >= _LARGE_BYTES]
        beside = set(large) if len(large) > 1 else set()
        with ThreadPoolExecutor(_LARGE_UPLOADS, thread_name_prefix=f"{self._thread.name}-large") as pool:
            futures = [pool.submit(self._upload, name, None) for name in large if name in beside]
            for together in _group([(name, self._pending[name].size) for name in names if name not in beside]):
                self._upload_together(together)
        for future in futures:
            future.result()
        return len(names)

    def _upload(self, name: str, within: int | None) -> None:
        state = self._pending[name]
        # A refused one is written down by the folder, and not tried again as it is.
        with suppress(RefusedError):
            if put_file(self._object_store, self._folder, name, self._target(name), within):
                self._uploaded[name] = state
        del self._pending[name]

    def _upload_together(self, names: list[str]) -> None:
        if len(names) == 1:
            self._upload(names[0], self._top)
            return
        contents: dict[str, bytes] = {}
        states: dict[str, FileState] = {}
        for name in names:
            target, content = self._target(name), None
            with suppress(RefusedError):  # see above
                content = read_file(self._folder, name, target, self._top)
            if content is not None:
                contents[target.key], states[name] = content, self._pending[name]
        put_objects(self._object_store, contents, self.destination.bucket)
        self._uploaded.update(states)
        for name in names:
            del self._pending[name]

    def _target(self, name: str) -> S3Uri:
        # A file's name is any bytes, a key is UTF-8.
        text = os.fsencode(name).decode("utf-8", "backslashreplace")
        return self.destination._replace(key=join_key(self.destination.key, text))


def _is_tensor_file(name: str) -> bool:
    """Not a file under its temporary name, nor the writers' claim on the folder, nor the end that only we write."""
    return not name.endswith(".tmp") and name not in ("claim.smd", END_OF_JOB)


def _group(files: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield the names of files in groups that are uploaded together; each is given with its size.

    >>> [len(group) for group in _group((str(number), 1) for number in range(70))]
    [32, 32, 6]
    >>> list(_group([("a", 3 << 20), ("b", 1 << 20), ("c", 1), ("d", 5 << 20), ("e", 1)]))
    [['a', 'b'], ['c'], ['d'], ['e']]
    """
    group: list[str] = []
    total = 0
    for name, size in files:
        if group and (len(group) == _TOGETHER or total + size > _TOGETHER_BYTES):
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group


def _upload_order(name: str) -> tuple[int, str]:
    """Events first, index files last; each in the order of steps."""
    top = name.split("/", 1)[0]
    return {_EVENTS: 0, _INDEX: 2}.get(top, 1), name
