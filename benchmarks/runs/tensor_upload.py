"""Upload of 1,000 small tensor files. Goal: 10 times HTTP puts to moto_server.

The uploader of a running job stores files that exist when it starts. It stores them durably, because the emulator's S3
survives a restart. For comparison, boto3 puts the same files to a moto_server process, which keeps them in memory. Both
run in turn for three rounds. The files are the event and index files of 500 steps, of 1.5 KB each.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
from botocore.config import Config

from benchmarks.shared.moto_server import run_moto_server
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.uploads.tensors import TensorUpload
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore, parse_s3_uri

ROUNDS = 3
STEPS = 500
BUCKET = "bench"


def write_run(folder: Path) -> list[Path]:
    """Write the event and index files of ``STEPS`` steps, which are 1,000 files."""
    files = []
    for step in range(STEPS):
        name = f"{step:012}"
        event = folder / "events" / name / f"{name}_worker_0.tfevents"
        index = folder / "index" / "000000000" / f"{name}_worker_0.json"
        for path in (event, index):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 1500)
            files.append(path)
    return files


def time_uploader(folder: Path, round_number: int) -> float:
    store = ObjectStore("123456789012", "us-east-1")
    upload = TensorUpload(JobFolder(folder), store, parse_s3_uri(f"s3://{BUCKET}/{round_number}"), "bench", 0.05)
    began = time.perf_counter()
    uploaded = upload.upload_new_files(everything=True)
    took = time.perf_counter() - began
    if uploaded != 2 * STEPS:
        raise RuntimeError(f"{uploaded} files were uploaded, not {2 * STEPS}")
    return took


def time_http_puts(url: str, folder: Path, files: list[Path], round_number: int) -> float:
    s3 = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
        config=Config(retries={"max_attempts": 1}),
    )
    if round_number == 0:
        s3.create_bucket(Bucket=BUCKET)
    began = time.perf_counter()
    for path in files:
        s3.put_object(Bucket=BUCKET, Key=f"{round_number}/{path.relative_to(folder)}", Body=path.read_bytes())
    return time.perf_counter() - began


def measure() -> Iterator[str]:
    ours, peer = [], []
    with run_moto_server() as (url, _), tempfile.TemporaryDirectory() as scratch:
        files = write_run(Path(scratch) / "run")
        s3 = open_s3(Path(scratch) / "s3")
        try:
            ObjectStore("123456789012", "us-east-1").create_bucket(BUCKET)
            for round_number in range(ROUNDS):
                ours.append(time_uploader(Path(scratch) / "run", round_number))
                peer.append(time_http_puts(url, Path(scratch) / "run", files, round_number))
        finally:
            s3.close()
    rate, peer_rate = 2 * STEPS / statistics.median(ours), 2 * STEPS / statistics.median(peer)
    yield f"uploader of a job     {rate:8.0f} files/s, durably stored"
    yield f"HTTP puts to moto     {peer_rate:8.0f} files/s, in memory"
    yield f"ratio                 {rate / peer_rate:8.1f} (goal: 10)"
