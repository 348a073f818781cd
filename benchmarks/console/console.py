"""Console on a run of 100,000 steps: time to the first plot, and memory.

The run has 500 tensors.

    python -m benchmarks console

First, the run is in a folder. A thousand steps are written, and the other steps are links to them, with the same
values. The benchmark starts the reader process and sends it requests, as the emulator does for a console page. Then the
same run is that of a job in an emulator's S3, and the benchmark sends the HTTP requests of the page to the emulator.
The environment variable `CONSOLE_STEPS` makes the run smaller.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from benchmarks.shared.scratch import scratch
from emulator.api.run_readers import RunReaders, build_reader_environment
from emulator.moto_services.s3.backend import open_s3, s3_access
from emulator.moto_services.s3.objects import ObjectStore
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET, TRAINING_IMAGE, build_script_mode, build_training_job, stage_source
from sdk_compat.emulator_process import EmulatorProcess
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.writing.file_writer import FileWriter

STEPS = int(os.environ.get("CONSOLE_STEPS", "100000"))
TENSORS, WRITTEN = 500, 1000
ACCOUNT = "123456789012"
JOB, SMALL_JOB = "long", "small"


def measure() -> Iterator[str]:
    with scratch() as folder:
        run = write_run(folder / "run")
        with open_reader() as readers:
            yield f"{STEPS:,} steps x {TENSORS} tensors, the process that reads is there:"
            readers.warm(ACCOUNT)
            # Wait until the reader has imported its modules, as it has when a page is open.
            readers.ask(ACCOUNT, write_small(folder / "small"), "describe", {})
            described = ask(readers, run, "describe")
            yield f"  the tree of tensors, the run not opened before: {described[0] * 1000:.0f} ms"
            first = ask(readers, run, "series", tensors=["loss"], most=24, points=800)
            yield f"  the first plot after it: {first[0] * 1000:.0f} ms ({first[1]} steps)"
            second = ask(readers, run, "series", tensors=["tensor/100"], most=24, points=800)
            yield f"  another tensor: {second[0] * 1000:.0f} ms"
            full = ask(readers, run, "series", tensors=["loss"], most=1000, points=800)
            yield f"  with {full[1]} steps: {full[0] * 1000:.0f} ms"
            again = ask(readers, run, "series", tensors=["loss"], most=1000, points=800)
            yield f"  the same again: {again[0] * 1000:.0f} ms"
            heat = ask(readers, run, "heat-map", regex="^tensor/1", columns=120)
            yield f"  a heat map of 111 tensors: {heat[0] * 1000:.0f} ms"
            yield f"  memory of the process: {read_resident_mb(readers):.0f} MB"
        yield f"the same run in an emulator's S3, {STEPS + WRITTEN:,} objects:"
        state = folder / "state"
        make_job(state)
        store_run(state / "s3", folder / "run")
        with EmulatorProcess(state, runtime="process") as emulator:
            yield from measure_stored(emulator)


def measure_stored(emulator: EmulatorProcess) -> Iterator[str]:
    """Measure the requests of a page after its stream is open and the reader has imported its modules."""
    path = f"{emulator.endpoint_url}/_emulator/jobs/us-east-1"
    with urlopen(f"{emulator.endpoint_url}/_emulator/stream?job=us-east-1/{JOB}", timeout=300):
        fetch(f"{path}/{SMALL_JOB}/tensors")
        before = read_memory_mb(emulator.process.pid)
        for what, asked in {
            "the tree of tensors, the run not opened before": "",
            "the first plot after it": "/series?tensor=loss&most=24&points=800",
            "with 1000 steps": "/series?tensor=loss&most=1000&points=800",
            "the same again": "/series?tensor=loss&most=1000&points=800",
            "a heat map of 111 tensors": "/heat-map?regex=%5Etensor/1&columns=120",
        }.items():
            yield f"  {what}: {fetch(f'{path}/{JOB}/tensors{asked}') * 1000:.0f} ms"
        after = read_memory_mb(emulator.process.pid)
        yield f"  memory of the emulator: {before} MB before the questions, {after} MB after them"


def fetch(url: str) -> float:
    """Return the seconds until the complete response has arrived."""
    began = time.perf_counter()
    with urlopen(url, timeout=300) as answer:
        answer.read()
    return time.perf_counter() - began


def make_job(state: Path) -> None:
    """Run two jobs that save nothing; the benchmark later stores tensors at their location."""
    with EmulatorProcess(state, runtime="process") as emulator:
        client = EmulatorSession(emulator.endpoint_url).client
        client("s3").create_bucket(Bucket=BUCKET)
        script = state.with_name("nothing.py")
        script.write_text("")
        source = stage_source(client("s3"), "nothing", [script])
        for name in (JOB, SMALL_JOB):
            request = build_training_job(
                name,
                image=TRAINING_IMAGE,
                hyperparameters=build_script_mode(source, script.name, {}),
                channels=(),
                collections={"losses": {"save_interval": "1"}},
            )
            client("sagemaker").create_training_job(**request)
            client("sagemaker").get_waiter("training_job_completed_or_stopped").wait(
                TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 300}
            )


def store_run(folder: Path, run: Path) -> None:
    """Store the written files in the S3 of an emulator, and copy them there for the other steps."""
    durable, objects = open_s3(folder), ObjectStore(ACCOUNT, "us-east-1")
    client = objects._backend()  # noqa: SLF001 - a hundred thousand requests would take as many milliseconds
    try:
        with s3_access():
            for name, source in ((SMALL_JOB, run.with_name("small")), (JOB, run)):
                for path in source.rglob("*"):
                    place = str(path.relative_to(source))
                    if path.is_file() and (not place.startswith("index/") or place.startswith(f"index/{0:09d}/")):
                        objects.put(BUCKET, f"tensors/{name}/debug-output/{place}", path)
            prefix = f"tensors/{JOB}/debug-output/index/"
            originals = sorted(key for key in client.get_bucket(BUCKET).keys if key.startswith(f"{prefix}{0:09d}/"))
            for first in range(WRITTEN, STEPS, WRITTEN):
                for original in originals[: STEPS - first]:
                    number, _, worker = original.rpartition("/")[2].partition("_")
                    key = f"{prefix}{first // WRITTEN:09d}/{first + int(number):012d}_{worker}"
                    client.copy_object(client.get_object(BUCKET, original), BUCKET, key)
    finally:
        durable.close()


@contextmanager
def open_reader() -> Iterator[RunReaders]:
    readers = RunReaders(lambda _: build_reader_environment({}), answer_seconds=300)
    try:
        yield readers
    finally:
        readers.close()


def ask(readers: RunReaders, run: Path, question: str, **arguments: Any) -> tuple[float, int]:
    """Return the seconds until the answer, and the number of steps in it."""
    began = time.perf_counter()
    answer = readers.ask(ACCOUNT, str(run), question, arguments)
    seconds = time.perf_counter() - began
    return seconds, answer["series"][0]["read"] if "series" in answer else 0


def read_resident_mb(readers: RunReaders) -> float:
    pids = {
        int(pid) for path in Path(f"/proc/{os.getpid()}/task").glob("*/children") for pid in path.read_text().split()
    }
    assert readers is not None
    return max(map(read_memory_mb, pids))


def read_memory_mb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024


def write_small(folder: Path) -> str:
    write_collections(folder)
    with FileWriter(str(folder), "worker_0", 0) as writer:
        writer.write_tensor(np.float32(1), "loss")
    (folder / END_OF_JOB_FILE).touch()
    return str(folder)


def write_collections(folder: Path) -> None:
    manager = CollectionManager()
    for name, regex in {"losses": "^loss", "custom": "^tensor/", "all": None, "default": None}.items():
        manager.add(Collection(name, include_regex=regex))
    manager.set_num_workers(1)
    manager.export(str(folder), "worker_0_collections.json")


def write_run(folder: Path) -> Path:
    """Write a thousand steps, and links to their index files for the other steps."""
    write_collections(folder)
    names = [f"tensor/{number}" for number in range(TENSORS - 1)]
    for step in range(min(WRITTEN, STEPS)):
        with FileWriter(str(folder), "worker_0", step) as writer:
            writer.write_tensor(np.float32(1 / (step + 1)), "loss")
            for number, name in enumerate(names):
                writer.write_tensor(np.float32(step + number), name)
    originals = sorted((folder / "index" / f"{0:09d}").iterdir())
    for first in range(WRITTEN, STEPS, WRITTEN):
        block = folder / "index" / f"{first // WRITTEN:09d}"
        block.mkdir()
        for original in originals[: STEPS - first]:
            number = first + int(original.name.partition("_")[0])
            os.link(original, block / f"{number:012d}_{original.name.partition('_')[2]}")
    (folder / END_OF_JOB_FILE).touch()
    return folder
