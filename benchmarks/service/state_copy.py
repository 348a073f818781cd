"""Request overhead of state replication, beside an emulator without it.

The state is replicated to moto_server on the same machine and processors. A client puts objects of 1.5 KB. Then it
creates jobs that fail in their first stage, like those of ``service``, one after the other. Finally, sixteen threads
create jobs at the same time. The results are medians of three rounds. The processor time is that of the emulator's
process until the replica is complete.
"""

import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.service.scale import read_processor_seconds
from benchmarks.service.service import build_ending_request
from benchmarks.shared.clients import build_client
from benchmarks.shared.moto_server import run_moto_server
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS, PUTS, JOBS, AT_ONCE = 3, 200, 40, 16
_SETTLED_SECONDS = 2.0


def measure() -> Iterator[str]:
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, run_peer() as peer, ExitStack() as stack:
        emulators = {}
        for name, endpoint in (("without", None), ("with", peer)):
            emulators[name] = stack.enter_context(run_emulator(Path(folder) / name, endpoint))
        for round_number in range(ROUNDS):
            for name, emulator in emulators.items():
                s3 = build_client("s3", emulator.endpoint_url)
                bucket = f"bench-{round_number}"
                s3.create_bucket(Bucket=bucket)
                for what, work in list_works(emulator, bucket):
                    seen.setdefault((what, name), []).append(time_work(emulator, work))
    for what in dict.fromkeys(what for what, _ in seen):
        times = {name: statistics.median(each for each, _ in seen[what, name]) for name in emulators}
        cost = {name: statistics.median(each for _, each in seen[what, name]) for name in emulators}
        yield (
            f"{what:<32} {times['with'] * 1000:6.1f} ms   {times['with'] / times['without']:5.2f} x without"
            f"   processor {cost['with'] * 1000:5.1f} ms   {cost['with'] / cost['without']:5.2f} x without"
        )


def list_works(emulator: EmulatorProcess, bucket: str) -> Iterator[tuple[str, Callable[[], list[float]]]]:
    """Yield the description of each workload, and a function that runs it and returns the seconds of each request."""
    s3, sagemaker = build_client("s3", emulator.endpoint_url), build_client("sagemaker", emulator.endpoint_url)
    request, body = build_ending_request(), bytes(1500)

    def create(_: int) -> float:
        return time_call(lambda: sagemaker.create_training_job(TrainingJobName=f"job-{uuid.uuid4().hex}", **request))

    def create_at_once() -> list[float]:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(create, range(JOBS * 2)))

    yield (
        "PutObject of 1.5 KB",
        lambda: [time_call(lambda: s3.put_object(Bucket=bucket, Key=uuid.uuid4().hex, Body=body)) for _ in range(PUTS)],
    )
    yield "CreateTrainingJob", lambda: [create(number) for number in range(JOBS)]
    yield f"CreateTrainingJob, {AT_ONCE} at once", create_at_once


def time_call(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def time_work(emulator: EmulatorProcess, work: Callable[[], list[float]]) -> tuple[float, float]:
    """Return the median seconds and the processor seconds of a request, after all background work is done."""
    record = json.loads((emulator.state_dir / "emulator.json").read_text())
    before = read_processor_seconds(record)
    seconds = work()
    wait_until_settled(emulator)
    return statistics.median(seconds), (read_processor_seconds(record) - before) / len(seconds)


def wait_until_settled(emulator: EmulatorProcess) -> None:
    """Wait until jobs have ended, events are delivered, and the replica, if any, has not changed for a while."""
    last, since = "", time.monotonic()
    while time.monotonic() - since < _SETTLED_SECONDS:
        with urlopen(f"{emulator.endpoint_url}/_emulator/health") as answer:
            health = json.load(answer)
        now = json.dumps([health["runningTrainingJobs"], health["undeliveredEvents"], health.get("copy")])
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.2)


@contextmanager
def run_peer() -> Iterator[str]:
    """Start moto_server with a bucket for the replica, and yield its endpoint."""
    with run_moto_server() as (url, _):
        build_client("s3", url).create_bucket(Bucket="smdebug-emulator")
        yield url


@contextmanager
def run_emulator(state_dir: Path, endpoint: str | None) -> Iterator[EmulatorProcess]:
    """Run an emulator, which replicates its state to another S3 if an endpoint is given."""
    name = "SMDEBUG_EMULATOR_S3_ENDPOINT"
    given = {} if endpoint is None else {name: endpoint, "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
    before = {each: os.environ.get(each) for each in given}
    os.environ.update(given)
    try:
        emulator = EmulatorProcess(state_dir, runtime="process")
    finally:
        for each, value in before.items():
            os.environ.pop(each) if value is None else os.environ.update({each: value})
    with emulator:
        yield emulator
