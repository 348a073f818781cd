"""Bucket lease: one emulator writes there, and renews its claim."""

import json
import logging
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from emulator.exceptions import StartupError
from emulator.state.fence import Fence
from emulator.state.folder import is_alive
from emulator.state.replica.bucket import Bucket, BucketError, Found

logger = logging.getLogger(__name__)

_KEY = "lease.json"
LEASE_SECONDS = 15.0
"""Seconds after its last renewal when another emulator may take the lease."""
RENEWAL_SECONDS = LEASE_SECONDS / 4
FENCE_SECONDS = LEASE_SECONDS - 5
"""Seconds after its last renewal when this process stops to drive jobs. What it has begun is done before the end."""
_POLL_SECONDS = 0.5


class LeaseLostError(Exception):
    """Another emulator has the lease; the text names it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lease.

    Attributes:
        folder: id of the state folder, on which one emulator at a time runs.
        run: id of the process's lifetime; no other process has it.
        host: host name of the machine.
        machine: id that no other running machine or process namespace has.
        pid: process id.
        state_dir: the state folder.
        since: when the lease was taken, for people.
        renewals: how often it was renewed since.
        released: whether it was released.
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
        """Describe the holder in messages."""
        return f"the emulator on {self.host} (process {self.pid}, state folder {self.state_dir}) since {self.since}"


def build_holder(folder: str, state_dir: Path) -> Holder:
    """Return the description of this process as a holder."""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Holder(folder, uuid.uuid4().hex, socket.gethostname(), _name_machine(), os.getpid(), str(state_dir), now)


def _name_machine() -> str:
    """Return the boot id of the machine with its process namespace; an empty string if they are not available."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_gone(holder: Holder) -> bool:
    """Return whether a holder's process is known to have ended: it ran on this machine, and no longer exists."""
    if not holder.machine or holder.machine != _name_machine():
        return False
    return not is_alive(holder.pid)


class Lease:
    """The lease, as requested or held by this process.

    Attributes:
        fence: open while no other emulator can have taken it.
    """

    def __init__(self, bucket: Bucket, me: Holder) -> None:
        """Start without the lease."""
        self._bucket, self._me = bucket, me
        self._etag = ""
        self.fence = Fence(FENCE_SECONDS)

    def take(self) -> None:
        """Take the lease; if another emulator holds it and does not renew it, wait until it expires.

        Raises:
            StartupError: another emulator renews it.
            BucketError: the S3 does not answer.
        """
        first: Found | None = None
        while True:
            found = self._bucket.find(_KEY)
            holder = None if found is None else _read(self._bucket, found)
            asked_at = self.fence.read_clock()
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
                        f"with --s3-bucket. {LEASE_SECONDS:.0f} s after its end, another emulator can take over."
                    )
                taken = None
                time.sleep(_POLL_SECONDS)
            if taken:
                self._etag = taken
                self.fence.extend(asked_at)
                return

    def renew(self) -> None:
        """Renew the lease of this process.

        Raises:
            LeaseLostError: another emulator has taken it.
            BucketError: the S3 does not answer.
        """
        self._me = replace(self._me, renewals=self._me.renewals + 1)
        asked_at = self.fence.read_clock()
        etag = self._bucket.replace(_KEY, self._encode(), self._etag)
        if etag is None:
            found = self._bucket.find(_KEY)
            holder = None if found is None else _read(self._bucket, found)
            if found is None or holder is None or holder.run != self._me.run:
                raise LeaseLostError(str(holder) if holder else "somebody who removed its lease")
            # An earlier renewal arrived although its answer did not.
            etag = self._bucket.replace(_KEY, self._encode(), found.etag)
            if etag is None:
                raise BucketError(f"{self._bucket}: the lease changed while it was renewed.")
        self._etag = etag
        self.fence.extend(asked_at)

    def release(self) -> None:
        """Release the lease, if this process still holds it.

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
            f"{bucket}: {_KEY} is not a lease of an emulator ({error}). Name another bucket or prefix with --s3-bucket."
        ) from error
