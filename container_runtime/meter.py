"""Resource counters of a container and of its machine.

They are read often, so each reading has to be cheap.
"""

import os
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_LEAST_SECONDS_BETWEEN_WAITS = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """A container's counters at one time.

    Attributes:
        cpu_seconds: CPU time of all processes of the container since it started.
        memory_bytes: memory that the processes hold now, without the page cache.
        read_bytes, written_bytes: bytes read from and written to storage since the container started.
        io_operations: number of reads and writes since the container started.
        received_bytes, sent_bytes: bytes transferred over the container's own network since it started. None if the
            container shares the network of the machine.
        waited_seconds: for how long its threads were ready to run and had no core, summed over the threads, since the
            meter was opened; 0 where the kernel does not count it.
        cpu_limit: how many cores the container may use at once; None for all of its machine.
    """

    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    io_operations: int
    received_bytes: int | None
    sent_bytes: int | None
    waited_seconds: float = 0.0
    cpu_limit: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The counters of a machine at one point in time.

    Attributes:
        busy_seconds: for each core, how long it was busy.
        waiting_seconds: for each core, how long it was idle while a process waited for storage.
        received_bytes, sent_bytes: sums over all networks of the machine.
    """

    busy_seconds: tuple[float, ...]
    waiting_seconds: tuple[float, ...]
    received_bytes: int
    sent_bytes: int


class Meter(Protocol):
    """Measures one container, and the machine that runs it, repeatedly. Only one thread may use it."""

    @property
    def is_local(self) -> bool:
        """Whether the container runs on this machine."""

    @property
    def gpus(self) -> tuple[str, ...] | None:
        """The UUIDs of the GPUs that the container holds; None if it holds all of its machine."""

    def list_processes(self) -> Collection[int]:
        """Return the ids of the container's processes on this machine, at the last ``read`` or now; none if unknown."""

    def read(self) -> Load | None:
        """Read the container's counters; None if the container has ended.

        Raises:
            ContainerRuntimeError: the counters cannot be read on this machine.
        """

    def read_machine(self) -> Machine:
        """Return the counters of the container's machine at the time of the last ``read``."""


class LocalMeter:
    """The part of a meter that concerns this machine.

    Attributes:
        is_local, gpus: see ``Meter``.
    """

    is_local: bool = True
    gpus: tuple[str, ...] | None = None

    def list_processes(self) -> Collection[int]:
        return ()

    def read_machine(self) -> Machine:
        return read_machine()


class WaitForCores:
    """The time that the threads of processes wait for a core. They are many, so they are read once a second at most."""

    def __init__(self, processes: Path | str = "/proc") -> None:
        """Prepare to read; ``processes`` is the ``/proc`` folder."""
        self._processes = processes
        self._read_at = 0.0
        self._by_thread: dict[str, int] = {}
        self._total_ns = 0

    def read(self, pids: Iterable[int]) -> float:
        """Return the seconds since the first call, summed over all threads; a thread that ended keeps its share."""
        now = time.monotonic()
        if now >= self._read_at:
            found = dict(_list_waits(pids, self._processes))
            if self._read_at:
                # What a new thread has waited before this reading counts whole.
                self._total_ns += sum(max(0, waited - self._by_thread.get(name, 0)) for name, waited in found.items())
            self._by_thread, self._read_at = found, now + _LEAST_SECONDS_BETWEEN_WAITS
        return self._total_ns / 1e9


def _list_waits(pids: Iterable[int], processes: Path | str) -> Iterable[tuple[str, int]]:
    """Yield the threads of processes, by their path, with the nanoseconds that they waited for a core."""
    for pid in pids:
        folder = f"{processes}/{pid}/task"
        with suppress(OSError):  # the process has ended, or a kernel without schedstat
            for thread in os.listdir(folder):  # noqa: PTH208 - once a second
                path = f"{folder}/{thread}/schedstat"
                with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - once a second
                    yield path, int(file.read().split()[1])


def read_machine(processes: Path | str = "/proc", network: Path | str = "/proc/net/dev") -> Machine:
    """Read the counters of a machine.

    Args:
        processes: its ``/proc`` folder.
        network: the file with the counters of its network interfaces.
    """
    busy, waiting = [], []
    with open(f"{processes}/stat", "rb") as file:  # noqa: PTH123 - ten times a second
        for line in file:
            if not line.startswith(b"cpu"):
                break
            name, *fields = line.split()
            if name != b"cpu":
                user, nice, system, _idle, iowait, irq, softirq, steal = map(int, fields[:8])
                busy.append((user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND)
                waiting.append(iowait / _TICKS_PER_SECOND)
    return Machine(tuple(busy), tuple(waiting), *read_network(network))


def read_network(devices: Path | str, *, loopback: bool = False) -> tuple[int, int]:
    """Return the bytes that the network interfaces in ``/proc/<pid>/net/dev`` have received and sent.

    Args:
        devices: path of the file.
        loopback: whether the loopback interface counts, which is so if the container reaches the emulator through it.
    """
    received = sent = 0
    with open(devices, "rb") as file:  # noqa: PTH123 - ten times a second
        for line in file.readlines()[2:]:
            name, _, counters = line.partition(b":")
            if loopback or name.strip() != b"lo":
                fields = counters.split()
                received, sent = received + int(fields[0]), sent + int(fields[8])
    return received, sent


def has_own_network(pid: int) -> bool:
    """Return whether a process is in another network namespace than this one; False if that cannot be read."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    return False


def read_io(pid: int, processes: Path | str = "/proc") -> tuple[int, int, int]:
    """Return the bytes read from storage, the bytes written to storage and the number of read and write calls.

    The numbers include the children that the process has reaped. They are 0 if they cannot be read.
    """
    try:
        with open(f"{processes}/{pid}/io", "rb") as file:  # noqa: PTH123 - ten times a second
            values = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:
        return 0, 0, 0  # the process has ended, or this user may not read its counters
    return int(values[b"read_bytes"]), int(values[b"write_bytes"]), int(values[b"syscr"]) + int(values[b"syscw"])
