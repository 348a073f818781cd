"""Archives of states that resets forgot, each kept for a day."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from emulator.exceptions import ResourceInUse
from emulator.state.archive import measure_archive, write_archive
from emulator.state.disk import DiskBudget

logger = logging.getLogger(__name__)

KEPT_SECONDS = 24 * 3600
MOST_KEPT = 3
MOST_KEPT_BYTES = 4 * 1024**3
_FOLDER = "forgotten"
_POLL_SECONDS = 600.0


class KeptState(NamedTuple):
    """The archive of a state that was reset.

    Attributes:
        path: the path of the archive.
        forgotten_ms: the time of the reset, in epoch milliseconds.
    """

    path: Path
    forgotten_ms: int


class KeptStates:
    """The archives of reset states. Until ``close``, a thread removes those that are older than a day."""

    def __init__(self, state_dir: Path, disk: DiskBudget) -> None:
        self._state_dir, self._disk = state_dir, disk
        self._folder = state_dir / _FOLDER
        self._closing = threading.Event()
        for partial in self._folder.glob("*.partial"):  # left by a process that was killed
            partial.unlink()
        self._thread = threading.Thread(target=self._remove_old, name="kept-states", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the thread to end; the archives stay."""
        self._closing.set()
        self._thread.join()

    def keep(self) -> KeptState:
        """Archive the state; the objects of S3 and the files of moto must not change in the meantime.

        The oldest archives are removed if there would be more than ``MOST_KEPT`` archives or ``MOST_KEPT_BYTES`` bytes.

        Raises:
            ResourceInUse: the archive would be too large, or the disk is full; the text says what to do.
        """
        size = measure_archive(self._state_dir)
        if size > MOST_KEPT_BYTES:
            raise _refuse(f"it has {size / 1024**3:.1f} GiB, and at most {MOST_KEPT_BYTES / 1024**3:.0f} GiB are kept")
        older = self._list()
        now_ms = max(time.time_ns() // 1_000_000, older[-1].forgotten_ms + 1 if older else 0)
        kept = KeptState(self._folder / f"{now_ms}.tar", now_ms)
        partial = kept.path.with_suffix(".partial")
        try:
            self._disk.check(size)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_archive(self._state_dir, partial)
            partial.replace(kept.path)
        except (OSError, sqlite3.Error) as error:
            partial.unlink(missing_ok=True)
            raise _refuse(str(error)) from error
        # Not before: if the state cannot be kept, those that were kept are still there.
        while older and (len(older) >= MOST_KEPT or size + sum(map(_read_size, older)) > MOST_KEPT_BYTES):
            older.pop(0).path.unlink(missing_ok=True)
        return kept

    @contextmanager
    def take_last(self) -> Iterator[KeptState | None]:
        """Yield the latest archive, or None; the archive is removed unless the block raises an exception."""
        known = self._list()
        last = known[-1] if known else None
        yield last
        if last is not None:
            last.path.unlink(missing_ok=True)

    def _list(self) -> list[KeptState]:
        """List the archives that are not older than a day, the oldest first."""
        first_ms = _find_first_ms()
        young = (each for each in self._find() if each.forgotten_ms >= first_ms)
        return sorted(young, key=lambda each: each.forgotten_ms)

    def _find(self) -> Iterator[KeptState]:
        for path in self._folder.glob("*.tar"):
            if path.stem.isdecimal():
                yield KeptState(path, int(path.stem))

    def _remove_old(self) -> None:
        while True:
            # The time alone decides: an archive that ``keep`` adds during this loop is young, whenever it is found.
            first_ms = _find_first_ms()
            for kept in self._find():
                if kept.forgotten_ms < first_ms:
                    kept.path.unlink(missing_ok=True)
                    logger.info("%s is removed: what was forgotten is kept for a day.", kept.path)
            if self._closing.wait(_POLL_SECONDS):
                return


def _find_first_ms() -> int:
    """Return the earliest time, in epoch milliseconds, of an archive that is still kept."""
    return time.time_ns() // 1_000_000 - KEPT_SECONDS * 1000


def _read_size(kept: KeptState) -> int:
    """Return the archive's size in bytes, 0 if it was removed in the meantime."""
    try:
        return kept.path.stat().st_size
    except FileNotFoundError:
        return 0


def _refuse(why: str) -> ResourceInUse:
    return ResourceInUse(
        f"Nothing was deleted, because no copy can be kept for reset --undo: {why}. Delete it without a copy by "
        "reset --all --no-undo, or first write it to another disk by state export FILE.",
        status=409,
    )
