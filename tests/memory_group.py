"""Control group of this machine's kernel, with a bound on memory."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import wait_until

_ROOT = Path("/sys/fs/cgroup")


class MemoryGroup:
    """A group of processes, one of which the kernel kills when they need more memory than the group may have.

    Args:
        folder: the group's, in either version of the kernel's interface.
        most_bytes: of memory.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._is_first = (folder / "memory.limit_in_bytes").exists()
        self._write("memory.swappiness" if self._is_first else "memory.swap.max", 0)
        self._write("memory.limit_in_bytes" if self._is_first else "memory.max", most_bytes)

    def add(self, pid: int) -> None:
        """Move a process into the group; what it holds already does not count."""
        self._write("cgroup.procs", pid)

    def count_kills(self) -> int:
        """Count the processes that the kernel has killed for want of memory."""
        text = (self._folder / ("memory.oom_control" if self._is_first else "memory.events")).read_text()
        return int(dict(line.split() for line in text.splitlines())["oom_kill"])

    def _write(self, name: str, value: int) -> None:
        (self._folder / name).write_text(str(value))


@contextmanager
def hold_memory_group(most_bytes: int) -> Iterator[MemoryGroup | None]:
    """Make a group, and remove it at the end; None where the kernel lets only root do that."""
    first = _ROOT / "memory"
    folder = (first if first.is_dir() else _ROOT) / f"test-{uuid.uuid4().hex[:12]}"
    try:
        folder.mkdir()
        group = MemoryGroup(folder, most_bytes)
    except OSError:
        if folder.is_dir():
            folder.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        wait_until(lambda: not (folder / "cgroup.procs").read_text())
        folder.rmdir()
