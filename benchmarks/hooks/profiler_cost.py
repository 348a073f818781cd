"""CPU share of the profiler's agent beside a container, by interval."""

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
# AWS's shortest interval and its default interval, in seconds, and the largest share of a core that each may take.
LIMITS = {0.1: 0.03, 0.5: 0.01}
BUSY = """
import os
held = bytearray(200 << 20)
os.fork()
os.fork()
print("begun", flush=True)
while True: sum(range(10_000))
"""
KERAS = """
import keras, numpy
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
model.compile(optimizer="sgd", loss="mse")
x, y = numpy.ones((256, 64)), numpy.ones((256, 10))
model.fit(x, y, verbose=0)
print("begun", flush=True)
while True: model.fit(x, y, epochs=100, verbose=0)
"""
WORKS = {"four busy processes": ("-I", "-S", "-c", BUSY), "a Keras training": ("-c", KERAS)}


def measure() -> Iterator[str]:
    """Measure a container with four busy processes of 200 MiB, then one that trains, at each interval."""
    with TemporaryDirectory() as folder:
        tiny = Path(folder, "images", "tiny")
        tiny.mkdir(parents=True)
        (tiny / "image.toml").write_text('name = "tiny"\nentrypoint = []\n')
        runtime = LocalProcesses(Path(folder, "processes"), ImageCatalogue(tiny.parent))
        for number, (work, arguments) in enumerate(WORKS.items()):
            entrypoint = (sys.executable, *arguments)
            spec = ContainerSpec(name=f"work-{number}", image="tiny", command=(), entrypoint=entrypoint)
            container = runtime.start(spec)
            try:
                if not any("begun" in line.text for line in runtime.logs(container)):
                    raise RuntimeError(f"The container of {work} ended before it began.")
                for interval, limit in LIMITS.items():
                    share = measure_share(runtime, container, interval, Path(folder, f"{number}-{interval:g}"))
                    yield f"{work}, every {1000 * interval:.0f} ms: {share:.2%} of a core (at most {limit:.0%})"
            finally:
                runtime.remove(container)


def measure_share(runtime: LocalProcesses, container: str, interval: float, folder: Path) -> float:
    """Return the processor time of the agent's thread as a share of the elapsed time."""
    monitor = SystemMonitor("job", "algo-1", 1 << 33, folder)
    before = set(Path("/proc/self/task").iterdir())
    monitor.start(runtime, container)
    (thread,) = set(Path("/proc/self/task").iterdir()) - before
    monitor.set_interval(interval)
    # Work that happens only once, at the start, is not measured.
    time.sleep(1)
    used, began = read_nanoseconds(thread), time.monotonic()
    time.sleep(SECONDS)
    share = (read_nanoseconds(thread) - used) / 1e9 / (time.monotonic() - began)
    monitor.finish()
    return share


def read_nanoseconds(thread: Path) -> int:
    """Return the processor time of a thread of this process, in nanoseconds."""
    return int((thread / "schedstat").read_text().split()[0])
