"""Bucket lease: one emulator writes there, and renews its claim."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import Bucket, BucketError

if TYPE_CHECKING:
    from emulator.state.replica.bucket import Found

logger = logging.getLogger(__name__)

_KEY = "lease.json"
LEASE_SECONDS = 15.0
"""So long after its last renewal another emulator may take it."""
RENEWAL_SECONDS = LEASE_SECONDS / 4
_POLL_SECONDS = 0.5


class LeaseLostError(Exception):
    """Another emulator has the lease; the text says which."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lease.

    Attributes:
        folder: id of the state folder, which one emulator at a time runs on.
        run: id of the process's own.
        host: name of the machine.
        machine: what no other machine has while it runs, nor another name space of processes on it.
        pid: of the process.
        state_dir: the state folder.
        since: when it was taken, for people.
        renewals: how often it was renewed since.
        released: whether it was given back.
    """

    folder: str
    run: str
    host: str
    machine: str
    pid: int
    state_dir: str
    since: str
    renewals: int = 0
    released: bool = False

    def __str__(self) -> str:
        """Name it for messages."""
        return f"the emulator on {self.host} (process {self.pid}, state folder {self.state_dir}) since {self.since}"


def build_holder(folder: str, state_dir: Path) -> Holder:
    """Build what this process says of itself."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Holder(folder, uuid.uuid4().hex, socket.gethostname(), _name_machine(), os.getpid(), str(state_dir), now)


def _name_machine() -> str:
    """Return the id of this boot of the machine, and of its name space of processes; nothing where there are none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_gone(holder: Holder) -> bool:
    """Whether a holder's process is known to have ended: it was of this machine, and is not there."""
    if not holder.machine or holder.machine != _name_machine():
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Lease:
    """The lease, as this process wants or has it."""

    def __init__(self, bucket: Bucket, me: Holder) -> None:
        """Hold nothing yet."""
        self._bucket, self._me = bucket, me
        self._etag = ""

    def take(self) -> None:
        """Take it; wait until it has expired where another emulator had it that does not renew it.

        Raises:
            StartupError: another emulator renews it.
            BucketError: the S3 does not answer.
        """
        first: Found | None = None
        while True:
            found = self._bucket.find(_KEY)
            holder = None if found is None else _read(self._bucket, found)
            if found is None or holder is None:
                taken = self._bucket.create(_KEY, self._encode())
            elif holder.released or found.age > LEASE_SECONDS or _is_gone(holder):
                taken = self._bucket.replace(_KEY, self._encode(), found.etag)
            else:
                if first is None:
                    first = found
                    logger.warning("%s is held by %s: waiting whether that one still lives.", self._bucket, holder)
                elif first.etag != found.etag:
                    raise StartupError(
                        f"{self._bucket} is written by {holder}: stop that emulator, or name another bucket or prefix "
                        f"with --s3-bucket. {LEASE_SECONDS:.0f} s after its end another may go on."
                    )
                taken = None
                time.sleep(_POLL_SECONDS)
            if taken:
                self._etag = taken
                return

    def renew(self) -> None:
        """Say that this process still has it.

        Raises:
            LeaseLostError: another took it.
            BucketError: the S3 does not answer.
        """
        self._me = replace(self._me, renewals=self._me.renewals + 1)
        etag = self._bucket.replace(_KEY, self._encode(), self._etag)
        if etag is None:
            found = self._bucket.find(_KEY)
            holder = None if found is None else _read(self._bucket, found)
            raise LeaseLostError(str(holder) if holder else "somebody who removed its lease")
        self._etag = etag

    def release(self) -> None:
        """Give it back, if it is still this process's.

        Raises:
            BucketError: the S3 does not answer.
        """
        self._me = replace(self._me, released=True)
        self._bucket.replace(_KEY, self._encode(), self._etag)

    def _encode(self) -> bytes:
        return json.dumps(asdict(self._me)).encode()


def _read(bucket: Bucket, found: Found) -> Holder:
    try:
        return Holder(**json.loads(found.content))
    except (ValueError, TypeError) as error:
        raise BucketError(
            f"{bucket}: {_KEY} is no lease of an emulator ({error}). Name another bucket or prefix with --s3-bucket."
        ) from error
