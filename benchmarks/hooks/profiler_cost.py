"""CPU share of the profiler beside a container, its start and uploads included."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.measuring.system_monitor import SystemMonitor
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.uploads.folder import FolderSync, FolderUpload
from emulator.jobs.uploads.live import UNFINISHED
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore, S3Uri

SECONDS = 30.0
# AWS's shortest interval and its default interval, in seconds, and the largest share of a core that each may take.
LIMITS = {0.1: 0.03, 0.5: 0.005}
BUCKET = "bench"
# Work ends by itself if the benchmark is killed, which leaves its containers behind.
BUSY = """
import os, time
held = bytearray(200 << 20)
os.fork()
os.fork()
print("begun", flush=True)
until = time.monotonic() + 600
while time.monotonic() < until: sum(range(10_000))
"""
KERAS = """
import keras, numpy, time
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
model.compile(optimizer="sgd", loss="mse")
x, y = numpy.ones((256, 64)), numpy.ones((256, 10))
model.fit(x, y, verbose=0)
print("begun", flush=True)
until = time.monotonic() + 600
while time.monotonic() < until: model.fit(x, y, epochs=100, verbose=0)
"""
WORKS = {"four busy processes": ("-I", "-S", "-c", BUSY), "a Keras training": ("-c", KERAS)}


def measure() -> Iterator[str]:
    """Measure a container with four busy processes of 200 MiB, then one that trains, at each interval."""
    with TemporaryDirectory() as folder:
        s3 = open_s3(Path(folder, "s3"))
        ObjectStore("123456789012", "us-east-1").create_bucket(BUCKET)
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
                    yield f"{work}, every {1000 * interval:.0f} ms: {share:.2%} of a core (at most {limit:.1%})"
            finally:
                runtime.remove(container)
        s3.close()


def measure_share(runtime: LocalProcesses, container: str, interval: float, folder: Path) -> float:
    """Return the processor time of the profiler's threads as a share of the elapsed time, from start to last upload."""
    folder.mkdir()
    store = ObjectStore("123456789012", "us-east-1")
    used, began = time.process_time(), time.monotonic()
    monitor = SystemMonitor("job", "algo-1", 1 << 33, folder / "measures")
    uploads = [
        FolderSync(FolderUpload(JobFolder(folder / part), store, S3Uri(BUCKET, part), UNFINISHED), part)
        for part in ("measures", "traces")
    ]
    monitor.start(runtime, container)
    monitor.set_interval(interval)
    for upload in uploads:
        upload.start()
    time.sleep(SECONDS)
    monitor.finish()
    for upload in uploads:
        upload.finish()
    return (time.process_time() - used) / (time.monotonic() - began)
