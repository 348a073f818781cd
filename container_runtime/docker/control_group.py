"""Resource meter of a Docker container, from control groups version 1 or 2."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from container_runtime.meter import Load, LocalMeter, WaitForCores, read_io, read_network
from container_runtime.runtime import ContainerRuntimeError

_ROOT = Path("/sys/fs/cgroup")
_PROCESSES = Path("/proc")
# Least time between two scans of all processes for those of a container. Counters of a process that ended between two
# scans are not lost: they are added to its parent's.
_POLL_SECONDS = 1.0


class ControlGroupMeter(LocalMeter):
    """Meter that reads the control groups of a container. If they no longer exist, the container has ended."""

    def __init__(
        self,
        pid: int,
        root: Path = _ROOT,
        processes: Path = _PROCESSES,
        *,
        behind_sidecar: bool = False,
        gpus: tuple[str, ...] | None = (),
    ) -> None:
        """Find the control groups of the container's first process.

        Args:
            pid: id of that process.
            root: folder of the control groups.
            processes: the ``/proc`` folder.
            behind_sidecar: whether the container reaches the emulator through its loopback interface, so that the
                traffic of that interface counts.
            gpus: the UUIDs of the GPUs that the container holds; None for all.

        Raises:
            ContainerRuntimeError: the process is not on this machine, or its control groups are not visible.
        """
        self._pid, self._processes, self.gpus = pid, processes, gpus
        self._found: list[int] = []
        self._next_poll = 0.0
        self._waits = WaitForCores(processes)
        self._network = f"{processes}/{pid}/net/dev"
        self._loopback = behind_sidecar
        try:
            lines = (processes / str(pid) / "cgroup").read_text().splitlines()
        except OSError as error:
            raise ContainerRuntimeError(f"The container's process {pid} is not to be seen: {error}") from error
        groups = {
            name: path.lstrip("/")
            for _, names, path in (line.split(":", 2) for line in lines)
            for name in names.split(",")
        }
        if "cpuacct" in groups:
            self._group, memory, io = (root / name / groups.get(name, "") for name in ("cpuacct", "memory", "blkio"))
            self._read_group: Callable[[], tuple[float, int, int, int, int]] = lambda: self._read_first(memory, io)
        else:
            self._group, self._read_group = root / groups.get("", ""), self._read_second
        if not self._group.is_dir():
            raise ContainerRuntimeError(f"The container's control group is not at {self._group}.")
        self._cpu_limit = _read_cpu_limit(root / "cpu" / groups["cpu"] if "cpu" in groups else self._group)

    def list_processes(self) -> list[int]:
        try:
            return self._list_processes()
        except OSError:
            return []  # the container has ended

    def read(self) -> Load | None:
        try:
            cpu_seconds, memory_bytes, read, written, operations = self._read_group()
            received, sent = read_network(self._network, loopback=self._loopback)
        except OSError:
            return None
        return Load(
            cpu_seconds=cpu_seconds,
            memory_bytes=memory_bytes,
            read_bytes=read,
            written_bytes=written,
            io_operations=operations,
            received_bytes=received,
            sent_bytes=sent,
            waited_seconds=self._waits.read(self.list_processes()),
            cpu_limit=self._cpu_limit,
        )

    def _read_second(self) -> tuple[float, int, int, int, int]:
        """Return what ``Load`` counts first: CPU time, memory, and what was read, written, and how often."""
        folder = self._group
        used = _read_pairs(folder / "cpu.stat")["usage_usec"] / 1e6
        memory = int((folder / "memory.current").read_text()) - _read_pairs(folder / "memory.stat")["inactive_file"]
        totals = {"rbytes": 0, "wbytes": 0, "rios": 0, "wios": 0}
        for line in (folder / "io.stat").read_text().splitlines() if (folder / "io.stat").exists() else ():
            for pair in line.split()[1:]:
                name, _, value = pair.partition("=")
                if name in totals:
                    totals[name] += int(value)
        return used, memory, totals["rbytes"], totals["wbytes"], totals["rios"] + totals["wios"]

    def _read_first(self, memory: Path, io: Path) -> tuple[float, int, int, int, int]:
        transferred, served = (
            _read_devices(io / f"blkio.throttle.io_{name}") for name in ("service_bytes", "serviced")
        )
        cache = _read_pairs(memory / "memory.stat")["total_inactive_file"]
        read, written, operations = transferred["Read"], transferred["Write"], served["Read"] + served["Write"]
        if not operations:
            # Current kernels fill these counters only for groups with a limit. Sum the counters of the processes
            # instead, as far as they are readable.
            each = [read_io(pid, self._processes) for pid in self._list_processes()]
            read, written, operations = (sum(counters) for counters in zip((0, 0, 0), *each, strict=True))
        used = int((self._group / "cpuacct.usage").read_text()) / 1e9
        return used, int((memory / "memory.usage_in_bytes").read_text()) - cache, read, written, operations

    def _list_processes(self) -> list[int]:
        found = [int(pid) for pid in (self._group / "cgroup.procs").read_text().split()]
        if found and 0 not in found:
            return found
        # Inside a container, the file shows 0 for processes outside it: use the first process and its descendants.
        if time.monotonic() > self._next_poll:
            self._next_poll = time.monotonic() + _POLL_SECONDS
            self._found = _list_below(self._pid, self._processes)
        return self._found


def _read_cpu_limit(folder: Path) -> float | None:
    """Return how many cores a control group may use at once; None if it has no limit, or none that can be read."""
    with suppress(OSError, ValueError):
        if (second := folder / "cpu.max").exists():
            quota, period = second.read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else None
    return None


def _list_below(pid: int, processes: Path) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir(processes):  # noqa: PTH208 - numbers
        if entry.isdigit():
            with suppress(OSError):
                parent = (processes / entry / "stat").read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
    found, unseen = [], [pid]
    while unseen:
        found.append(unseen.pop())
        unseen += children.get(found[-1], ())
    return found


def _read_pairs(path: Path) -> dict[str, int]:
    """Parse lines of a name and a number."""
    return {name: int(value) for name, value in (line.split() for line in path.read_text().splitlines())}


def _read_devices(path: Path) -> dict[str, int]:
    """Parse lines of a device, a kind of transfer and a number, and sum the numbers by kind."""
    totals = {"Read": 0, "Write": 0}
    for line in path.read_text().splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in totals:
            totals[fields[1]] += int(fields[2])
    return totals
