"""Throughput of one emulator: S3 puts, events, tensors and waiting jobs.

The puts are measured with and without TLS.

The load comes from sixteen boto3 clients in four processes on the same machine, which use more processor time than the
emulator.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from benchmarks.runs.tensor_upload import STEPS, time_uploader, write_run
from emulator.jobs.runs.admission import Admission
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore

PROCESSES, THREADS = 4, 4
SMALL, LARGE = (1_500, 60), (8_000_000, 2)
BATCHES, BATCH = 5, 10
WAITING = (100, 1_000, 3_000)
_POLL_SECONDS = 5.0


def measure() -> Iterator[str]:
    for encrypted in (False, True):
        with tempfile.TemporaryDirectory() as folder, start_emulator(Path(folder), tls=encrypted) as record:
            how = "TLS" if encrypted else "plain"
            connect(record, "s3").create_bucket(Bucket="scale")
            for size, number in (SMALL, LARGE):
                before, wanted = read_processor_seconds(record), PROCESSES * THREADS * number
                seconds = run_clients(partial(put, record, size, number))
                cost = (read_processor_seconds(record) - before) / wanted
                yield f"puts of {size:>9,} bytes, {how:<5}  {wanted / seconds:7.0f}/s   {format_cost(cost)}"
            if not encrypted:
                yield measure_events(record)
    yield measure_tensors()
    yield from measure_waiting()


def measure_events(record: dict[str, Any]) -> str:
    """Measure events from clients, each of which a rule delivers to a queue."""
    events, sqs = connect(record, "events"), connect(record, "sqs")
    queue = sqs.create_queue(QueueName="scale")["QueueUrl"]
    events.put_rule(Name="scale", EventPattern=json.dumps({"source": ["scale"]}))
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_targets(Rule="scale", Targets=[{"Id": "queue", "Arn": arn}])
    wanted = PROCESSES * THREADS * BATCHES * BATCH
    began, before = time.perf_counter(), read_processor_seconds(record)
    run_clients(partial(put_events, record))
    while count_messages(sqs, queue) < wanted:
        time.sleep(0.05)
    rate = wanted / (time.perf_counter() - began)
    cost = (read_processor_seconds(record) - before) / wanted
    return f"events to a queue              {rate:7.0f}/s   {format_cost(cost)}"


def read_processor_seconds(record: dict[str, Any]) -> float:
    """Return the processor seconds that the emulator's process has used so far."""
    fields = Path(f"/proc/{record['pid']}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def format_cost(seconds: float) -> str:
    """Describe the processor time of one item, and the number of items that one processor can handle per second."""
    return f"{seconds * 1000:6.1f} ms of the emulator's processor each: at most {1 / seconds:5.0f}/s"


def count_messages(sqs: Any, queue: str) -> int:
    name = "ApproximateNumberOfMessages"
    return int(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=[name])["Attributes"][name])


def measure_tensors() -> str:
    """Measure the upload of tensor files from a job's folder to S3."""
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder) / "run")
        s3 = open_s3(Path(folder) / "s3")
        try:
            ObjectStore("123456789012", "us-east-1").create_bucket("bench")
            seconds = time_uploader(Path(folder) / "run", 0)
        finally:
            s3.close()
    return f"tensor files of a local job    {2 * STEPS / seconds:7.0f}/s"


def measure_waiting() -> Iterator[str]:
    """Measure the processor time of jobs that wait for capacity."""
    for number in WAITING:
        admission, stop = Admission(1), threading.Event()
        admission.reattach("first", 1)
        threads = [
            threading.Thread(target=admission.wait, args=(f"job-{each}", each, 1, stop, lambda _reason: None))
            for each in range(number)
        ]
        for each in threads:
            each.start()
        time.sleep(1)
        began, at = time.process_time(), time.perf_counter()
        time.sleep(_POLL_SECONDS)
        share = (time.process_time() - began) / (time.perf_counter() - at)
        stop.set()
        for each in threads:
            each.join()
        yield f"{number:>6,} jobs that wait          {share:7.1%} of a core"


@contextmanager
def start_emulator(folder: Path, *, tls: bool) -> Iterator[dict[str, Any]]:
    """Run an emulator, and yield the content of its ``emulator.json``."""
    state_dir = folder / "state"
    command = [sys.executable, "-m", "emulator", "start", "--port", "0", "--runtime", "process"]
    command += ["--state-dir", str(state_dir), *(["--tls"] if tls else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield json.loads((state_dir / "emulator.json").read_text())
    finally:
        process.terminate()
        process.communicate()


def connect(record: dict[str, Any], service: str) -> Any:
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=record["endpoint_url"],
        verify=record["ca_bundle"],
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )


def put(record: dict[str, Any], size: int, number: int, who: str) -> None:
    s3, body = connect(record, "s3"), bytes(size)
    for each in range(number):
        s3.put_object(Bucket="scale", Key=f"{size}/{who}/{each}", Body=body)


def put_events(record: dict[str, Any], who: str) -> None:
    events = connect(record, "events")
    entries = [{"Source": "scale", "DetailType": who, "Detail": "{}"}] * BATCH
    for _ in range(BATCHES):
        events.put_events(Entries=entries)


def run_clients(work: Callable[[str], None]) -> float:
    """Run the work of all clients at the same time, and return the seconds from the start of the first."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, spawn) as pool:
        list(pool.map(abs, range(PROCESSES)))  # starts the processes
        began = time.perf_counter()
        for each in [pool.submit(run_threads, work, number) for number in range(PROCESSES)]:
            each.result()
        return time.perf_counter() - began


def run_threads(work: Callable[[str], None], process: int) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for each in [pool.submit(work, f"{process}-{thread}") for thread in range(THREADS)]:
            each.result()
