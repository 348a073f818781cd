"""Resource counters of a container: CPU, memory, disk and network.

They are read often, so each reading has to be cheap.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Load:
    """A container's counters at one time.

    Attributes:
        cpu_seconds: processor time of all its processes since its start.
        memory_bytes: what they hold now, files' cache left out.
        read_bytes, written_bytes: from and to storage, since its start.
        io_operations: reads and writes since its start.
        received_bytes, sent_bytes: by the network that is its own, since its start; None where it shares the machine's.
    """

    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    io_operations: int
    received_bytes: int | None
    sent_bytes: int | None


class Meter(Protocol):
    """Measures one container, again and again, in one thread."""

    def read(self) -> Load | None:
        """Read its counters; None when it has ended.

        Raises:
            ContainerRuntimeError: they cannot be read here.
        """


def read_network(devices: Path | str, *, loopback: bool = False) -> tuple[int, int]:
    """Read the bytes that all but the loopback interface of ``/proc/<pid>/net/dev`` have received and sent.

    Args:
        devices: the file.
        loopback: whether that interface counts as well, as where the emulator is reached by it.
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
    """Whether a process is in another network than this one; not where that is not told."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    return False


def read_io(pid: int, processes: Path | str = "/proc") -> tuple[int, int, int]:
    """Read the bytes that a process and the children it reaped read from storage and wrote to it, and their calls."""
    try:
        with open(f"{processes}/{pid}/io", "rb") as file:  # noqa: PTH123 - ten times a second
            values = dict(line.split(b": ") for line in file.read().splitlines())
    except OSError:
        return 0, 0, 0  # it has ended, or is not ours to read
    return int(values[b"read_bytes"]), int(values[b"write_bytes"]), int(values[b"syscr"]) + int(values[b"syscw"])
