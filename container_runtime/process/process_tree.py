"""Resource meter of a local process tree, from /proc."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from container_runtime.meter import Load, LocalMeter, WaitForCores, has_own_network, read_io, read_network
from container_runtime.process.supervised import is_running, read_supervisor_pid
from container_runtime.process.supervisor import PAGE_BYTES, find_descendants, read_proportional_bytes

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Least time between two scans of the tree, and between two measurements of shared pages, and the most share of a core
# that each of them may take; the latter may take more where the tree has other processes than at the last one.
_LEAST_SECONDS = 0.5
_MOST_SHARE = 0.001
_MOST_SHARE_OF_CHANGES = 0.004


class ProcessTreeMeter(LocalMeter):
    """Meter of a local process tree.

    A process that starts and ends between two scans of the tree counts only through the counters that its parent keeps
    for reaped children.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare to measure the container whose supervisor uses this folder."""
        self._folder = folder
        self._supervisor: int | None = None
        self._tree: Sequence[int] = ()
        self._scan_at = 0.0
        # The resident memory of each process includes pages that it shares. This is the part of them, in bytes, that
        # others hold, when it was measured last. What a process has taken since then counts whole, and processes that
        # are not in here count when they are measured, too.
        self._held_by_others: dict[int, int] = {}
        self._measured: Sequence[int] = ()
        self._measure_at = self._measure_changed_at = 0.0
        self._network: str | None = None
        self._has_run = False
        self._waits = WaitForCores()

    def list_processes(self) -> Sequence[int]:
        return self._tree

    def read(self) -> Load | None:
        if not is_running(self._folder):
            return None
        now = time.monotonic()
        if not self._has_run or now >= self._scan_at:
            self._scan()
        supervisor = self._supervisor
        if supervisor is None:
            return None
        stats = {pid: _read_stat(pid) for pid in self._tree}
        if self._has_run and not any(resident for _, resident in stats.values()):
            # The known processes have ended: either there are new ones, or only the supervisor is left.
            self._scan()
            stats = {pid: _read_stat(pid) for pid in self._tree}
            if not any(resident for _, resident in stats.values()):
                return None
        due = self._measure_at if self._measured == self._tree else self._measure_changed_at
        if now >= due or not any(stats[pid][1] for pid in self._measured if pid in stats):
            self._measure_shared_pages(now)
        # On a busy machine the container's first process may not have started yet.
        self._has_run = self._has_run or any(resident for _, resident in stats.values())
        reaped, _ = _read_stat(supervisor, of_children=True)
        ios = [read_io(pid) for pid in self._tree]
        received, sent = self._read_network()
        return Load(
            cpu_seconds=(reaped + sum(ticks for ticks, _ in stats.values())) / _TICKS_PER_SECOND,
            memory_bytes=sum(
                max(0, stats[pid][1] - others) for pid, others in self._held_by_others.items() if pid in stats
            ),
            read_bytes=sum(each[0] for each in ios),
            written_bytes=sum(each[1] for each in ios),
            io_operations=sum(each[2] for each in ios),
            received_bytes=received,
            sent_bytes=sent,
            waited_seconds=self._waits.read(self._tree),
        )

    def _scan(self) -> None:
        began = time.thread_time()
        guardian = read_supervisor_pid(self._folder)
        if guardian is None:
            return
        # The first is the supervisor. Its memory does not count for the container; the processes that it reaped do.
        self._supervisor, *self._tree = find_descendants(guardian) or [guardian]
        if self._network is None and self._tree and has_own_network(self._tree[-1]):
            self._network = f"/proc/{self._tree[-1]}/net/dev"
        self._scan_at = time.monotonic() + max(_LEAST_SECONDS, (time.thread_time() - began) / _MOST_SHARE)

    def _measure_shared_pages(self, now: float) -> None:
        """Measure which part of their resident memory the processes really hold; slow for large ones."""
        began = time.thread_time()
        self._held_by_others = {}
        for pid in self._tree:
            _, resident = _read_stat(pid)
            proportional = read_proportional_bytes(pid)  # 0 if it cannot be read
            self._held_by_others[pid] = max(0, resident - proportional) if proportional else 0
        self._measured = self._tree
        took = time.thread_time() - began
        self._measure_at = now + max(_LEAST_SECONDS, took / _MOST_SHARE)
        self._measure_changed_at = now + max(_LEAST_SECONDS, took / _MOST_SHARE_OF_CHANGES)

    def _read_network(self) -> tuple[int | None, int | None]:
        if self._network is None:
            return None, None
        try:
            return read_network(self._network)
        except OSError:  # that process has ended: the next scan chooses another one
            self._network = None
            return None, None


def _read_stat(pid: int, *, of_children: bool = False) -> tuple[int, int]:
    """Return the CPU time of a process and its reaped children in clock ticks, and its resident bytes.

    Both are 0 if the process has ended. With ``of_children``, the time is that of the reaped children only.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - ten times a second
            # The command name is in parentheses and may itself contain parentheses.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, 0
    return sum(map(int, fields[13:15] if of_children else fields[11:15])), int(fields[21]) * PAGE_BYTES
