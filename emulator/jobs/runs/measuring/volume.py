"""Volume limit of a job's host: use of space, and the end of a job beyond it.

No separate file system enforces the limit, so a thread polls. It reads the free space of the disk several times a
second, which is cheap. It measures the job's folders less often, unless the loss of free space means that they may have
reached the limit.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from container_runtime.runtime import ContainerNotFoundError, ContainerRuntime, ContainerRuntimeError
from emulator.jobs.runs.measuring.agent_thread import AgentThread
from emulator.jobs.staging.instance_types import GIB
from emulator.jobs.staging.job_files import JobFolder
from emulator.state.disk import DiskBudget

logger = logging.getLogger(__name__)

# AWS's default if a request has no size.
_DEFAULT_GB = 30
_TICK_SECONDS = 0.25
# Share of a CPU core for measuring the folders: normally, and when the limit may have been reached.
_SHARE, _HURRIED_SHARE = 0.005, 0.1
_FIRST_SECONDS, _LAST_SECONDS = 0.5, 5.0
# How much a job may write while the disk is full before it is ended for filling the disk.
_GROWTH_BYTES = 1024**2


class Volume(NamedTuple):
    """A host's storage volume.

    Attributes:
        folders: the folders that the container writes to.
        member: the request member that sets the size, for messages.
        limit: size in bytes.
    """

    folders: Sequence[Path]
    member: str
    limit: int

    def measure(self) -> int:
        """Return the disk space of the folders in bytes. A file with several names counts once."""
        taken, seen = 0, set()
        for folder in self.folders:
            for _, state in JobFolder(folder).walk():
                if state.st_nlink == 1 or (state.st_dev, state.st_ino) not in seen:
                    taken += state.st_blocks * 512
                if state.st_nlink > 1:
                    seen.add((state.st_dev, state.st_ino))
        return taken


def find_limit(size_gb: int | None) -> int:
    """Return the size of a volume in bytes. If ``size_gb`` is None or 0, it is AWS's default."""
    return (size_gb or _DEFAULT_GB) * GIB


class VolumeWatch(AgentThread):
    """A thread that measures a container's volume, and stops the container when the volume is full.

    Attributes:
        taken: use of the volume in bytes at the last measurement.
        reason: why the container was stopped, for the job's FailureReason; None if it was not.
    """

    def __init__(self, name: str, volume: Volume, disk: DiskBudget) -> None:
        """Prepare to measure.

        Args:
            name: name of the host, for messages.
            volume: the volume.
            disk: the disk with the volume's folders.
        """
        super().__init__(f"volume-{name}")
        self.volume = volume
        self.taken = 0
        self.reason: str | None = None
        self._name = name
        self._disk = disk

    def _run(self, runtime: ContainerRuntime, container_id: str) -> None:
        try:
            self.reason = self._watch()
            if self.reason is not None:
                logger.warning("%s is ended: %s", self._name, self.reason)
                runtime.stop(container_id, 0.0)
        except ContainerNotFoundError:
            return
        except (OSError, ContainerRuntimeError) as error:
            logger.warning("The volume of %s is watched no longer: %s", self._name, error)

    def _watch(self) -> str | None:
        """Measure until the container ends; return None, or the reason if the container has to be stopped."""
        free = self._disk.read_free()
        self._measure(free, free)
        pause = _FIRST_SECONDS
        begun = measured_at = time.monotonic()
        while (full := self._describe_excess()) is None:
            cost = measured_at - begun
            pause = min(2 * pause, _LAST_SECONDS)
            while True:
                if self._ended.wait(_TICK_SECONDS):
                    return None
                waited, left = time.monotonic() - measured_at, self.volume.limit - self.taken
                now_free = self._disk.read_free()
                hurried = free - now_free >= left // 2 or now_free < self._disk.reserve
                if waited >= (cost / _HURRIED_SHARE if hurried else max(pause, cost / _SHARE)):
                    break
            before, begun = self.taken, time.monotonic()
            self._measure(free, now_free)
            free, measured_at = now_free, time.monotonic()
            if free < self._disk.reserve and self.taken > before + _GROWTH_BYTES:
                return (
                    f"No space left on device: {free / 1024**2:,.0f} MiB are free on the disk of the emulator's state "
                    f"folder, where {self._disk.reserve / 1024**2:,.0f} MiB are to stay free (--disk-reserve), and the "
                    f"job went on writing. It holds {self.taken / GIB:.2f} GiB."
                )
        return full

    def _measure(self, free_before: int, free: int) -> None:
        try:
            self.taken = self.volume.measure()
        except OSError as error:
            # The job has removed the emulator's permissions for a folder: all space that the disk lost may be in there.
            logger.debug("%s cannot be measured: %s", self._name, error)
            self.taken += max(0, free_before - free)

    def _describe_excess(self) -> str | None:
        if self.taken <= self.volume.limit:
            return None
        return (
            f"No space left on device: the job wrote {self.taken / GIB:.2f} GiB to its volume, and "
            f"{self.volume.member} is {self.volume.limit / GIB:g}. What is in /opt/ml, /tmp and the home folder "
            "counts, input included. Write less, or ask for a larger volume."
        )
