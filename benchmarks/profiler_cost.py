"""What the profiler's agent costs beside a container: of a core, at each interval."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.measuring.system_monitor import SystemMonitor

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 10.0
# AWS's shortest interval, its default, and how much of a core each may take at most.
LIMITS = {0.1: 0.03, 0.5: 0.01}
WORK = "import os\nheld = bytearray(200 << 20)\nos.fork()\nos.fork()\nwhile True: sum(range(10_000))"


def measure() -> Iterator[str]:
    """Measure a container of four busy processes that hold 200 MiB, at each interval in turn."""
    with TemporaryDirectory() as folder:
        tiny = Path(folder, "images", "tiny")
        tiny.mkdir(parents=True)
        (tiny / "image.toml").write_text('name = "tiny"\nentrypoint = []\n')
        runtime = LocalProcesses(Path(folder, "processes"), ImageCatalogue(tiny.parent))
        spec = ContainerSpec(name="work", image="tiny", command=(), entrypoint=(sys.executable, "-I", "-S", "-c", WORK))
        container = runtime.start(spec)
        try:
            for interval, limit in LIMITS.items():
                share = measure_share(runtime, container, interval, Path(folder, f"{interval:g}"))
                yield f"every {1000 * interval:.0f} ms: {share:.2%} of a core (at most {limit:.0%})"
        finally:
            runtime.remove(container)


def measure_share(runtime: LocalProcesses, container: str, interval: float, folder: Path) -> float:
    """Processor time of the agent's thread, of the time that passes."""
    monitor = SystemMonitor("job", "algo-1", 1 << 33, folder)
    before = set(Path("/proc/self/task").iterdir())
    monitor.start(runtime, container)
    (thread,) = set(Path("/proc/self/task").iterdir()) - before
    monitor.set_interval(interval)
    # What happens once at the start is not what it costs.
    time.sleep(1)
    used, began = read_nanoseconds(thread), time.monotonic()
    time.sleep(SECONDS)
    share = (read_nanoseconds(thread) - used) / 1e9 / (time.monotonic() - began)
    monitor.finish()
    return share


def read_nanoseconds(thread: Path) -> int:
    """Processor time of a thread of this process."""
    return int((thread / "schedstat").read_text().split()[0])
