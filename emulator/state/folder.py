"""State folder of an emulator: its lock, and the record of the running process."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from container_runtime.machine import is_in_own_image
from emulator import VERSION
from emulator.exceptions import StartupError

with suppress(ModuleNotFoundError):  # Windows, where commands are clients of an emulator elsewhere
    import fcntl
    import pwd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from emulator.security.keys import Keys

logger = logging.getLogger(__name__)

WORK_FOLDERS = "jobs"
"""Name of the folder in the state folder that contains the folders of jobs."""
RECORD_NAME = "emulator.json"
_LOCK_NAME = "emulator.lock"
_POLLS, _POLL_SECONDS = 10, 0.02
# How long commands wait for an emulator that holds the folder and has not written its record yet.
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RunningEmulator:
    """The record of a running emulator in ``emulator.json``.

    Attributes:
        pid: process id of the emulator.
        endpoint_url: its URL on this machine.
        region: its default region.
        version: the version of its distribution.
        account_id: the account of requests that no account's key signed.
        secret: the secret key of its own key and of the accounts' keys; None if signatures are not required.
        token: grants access to its own API; None if that needs no token.
        ca_bundle: the CA file for its clients; None without TLS.
        is_remote: whether it was found by an address, not by a state folder of this machine.
    """

    pid: int
    endpoint_url: str
    region: str
    version: str = "unknown"
    account_id: str | None = None
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_bundle: str | None = None
    is_remote: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers that a request to its own API needs."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class StateFolder:
    """A state folder that this process holds until ``close``, or until the process ends for any reason."""

    def __init__(self, state_dir: Path) -> None:
        """Create the folder if needed, and lock it.

        Raises:
            StartupError: it cannot be written, or another emulator holds it.
        """
        self._state_dir = state_dir
        try:
            self._made: Sequence[Path] = make_state_dir(state_dir)
            self._lock = (state_dir / _LOCK_NAME).open("a")
        except OSError as error:
            raise StartupError(describe_unwritable(state_dir, error)) from error
        if not _take_lock(self._lock):
            self._lock.close()
            record = read_record(state_dir)
            where = "" if record is None else f"; it answers at {record.endpoint_url}"
            raise StartupError(
                f"Another emulator is using the state folder {state_dir}{where}: use that one, stop it "
                f"(smdebug-emulator stop --state-dir {state_dir}), or give another folder with --state-dir."
            )
        if killed := read_record(state_dir):
            logger.error(
                "The emulator before this one, process %d, did not close: it was killed (out of memory, kill -9), or "
                "the machine went down. Its jobs go on from where they were.",
                killed.pid,
            )
            # Until this emulator answers, clients must not find the address of the previous one.
            (state_dir / RECORD_NAME).unlink()

    def announce(
        self,
        endpoint_url: str,
        region: str,
        account_id: str,
        keys: Keys | None = None,
        ca_bundle: Path | None = None,
    ) -> None:
        """Write the record atomically; only its owner may read it."""
        secret, token = (None, None) if keys is None else (keys.secret, keys.token)
        bundle = None if ca_bundle is None else str(ca_bundle)
        record = RunningEmulator(os.getpid(), endpoint_url, region, VERSION, account_id, secret, token, bundle)
        partial = self._state_dir / f"{RECORD_NAME}.partial"
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(asdict(record)))
        partial.replace(self._state_dir / RECORD_NAME)
        self._made = ()

    def close(self) -> None:
        """Remove the record and release the folder; if it was made for a start that failed, remove it."""
        (self._state_dir / RECORD_NAME).unlink(missing_ok=True)
        remove_made(self._made)
        self._lock.close()


def make_state_dir(state_dir: Path) -> list[Path]:
    """Make a state folder, and return it and those above it that were missing; empty if it was there.

    Raises:
        OSError: it cannot be made.
    """
    missing = [each for each in (state_dir, *state_dir.parents) if not each.exists()]
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return missing


def remove_made(made: Sequence[Path]) -> None:
    """Remove what ``make_state_dir`` made: the state folder with its content, and those above it that are empty."""
    if made:
        shutil.rmtree(made[0], ignore_errors=True)
    with suppress(OSError):
        for each in made[1:]:
            each.rmdir()


def remove_unused(made: Sequence[Path]) -> None:
    """Do as ``remove_made``, unless an emulator holds the state folder by now."""
    if not made:
        return
    with suppress(OSError), (made[0] / _LOCK_NAME).open("a") as lock:
        if _try_lock(lock):
            remove_made(made)


def find_running_emulator(state_dir: Path) -> RunningEmulator | None:
    """Find the emulator that holds ``state_dir`` and answers; return None if there is none.

    One that is starting is awaited for some seconds.
    """
    deadline = time.monotonic() + _START_SECONDS
    while not is_free(state_dir):
        if (record := read_record(state_dir)) is not None or time.monotonic() > deadline:
            return record
        time.sleep(5 * _POLL_SECONDS)
    return None


def read_record(state_dir: Path) -> RunningEmulator | None:
    """Read the record of an emulator, which was killed if the folder is free; None if it was closed."""
    try:
        return RunningEmulator(**json.loads((state_dir / RECORD_NAME).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine, and of this process namespace, exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True


def describe_unwritable(state_dir: Path, error: OSError) -> str:
    """Describe in one line which state folder cannot be written, why, and what to do."""
    why, remedy = str(error.strerror), "give another with --state-dir"
    blamed = Path(error.filename or state_dir)
    if isinstance(error, PermissionError):
        found, status = _find_existing(blamed)
        why += f"; {found} is of {name_user(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o}"
        if found.is_relative_to(state_dir.absolute()):
            if is_in_own_image():
                remedy = f"start the container as its owner, with --user {status.st_uid}"
            else:
                remedy += f", or make it yours: sudo chown -R {name_user(os.geteuid())} {shlex.quote(str(state_dir))}"
    return f"The state folder {state_dir} cannot be written ({why}): {remedy}."


def _find_existing(path: Path) -> tuple[Path, os.stat_result]:
    """Return the nearest of a path and its parents that exists and is visible."""
    for each in (path.absolute(), *path.absolute().parents):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            return each, each.stat()
    raise AssertionError("The root of the file system is always there.")


def name_user(uid: int) -> str:
    """Return a user's name, or the uid of a user without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_free(state_dir: Path) -> bool:
    """Return whether no emulator holds ``state_dir``."""
    try:
        with (state_dir / _LOCK_NAME).open("a") as lock:
            return _try_lock(lock)
    except OSError:
        return True


def _take_lock(lock: TextIO) -> bool:
    """Take the lock, with retries: a process that only checks whether the folder is free holds it for a moment, too."""
    for _ in range(_POLLS):
        if _try_lock(lock):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _try_lock(lock: TextIO) -> bool:
    if "fcntl" not in globals():
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
