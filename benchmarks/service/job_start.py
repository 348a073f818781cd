"""Job start latency, minus plain docker run or exec. Goal: under 0.3 s more.

The latency is the time from the request to the running container, and the plain command runs the same image.

Both the job's entry point and the plain command print the time first. They run in turn, seven times each.
"""

import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from benchmarks.shared.engine import back_ends
from benchmarks.shared.logs import find_line
from sdk_compat.demo.training_job import BUCKET, ROLE_ARN, TRAINING_IMAGE
from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 7
PRINT_CLOCK = "import time; print('clock', time.time(), flush=True)"


def time_job(sagemaker: Any, logs: Any) -> float:
    name = f"clock-{uuid.uuid4().hex[:8]}"
    began = time.time()
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE_ARN,
        AlgorithmSpecification={
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-c", PRINT_CLOCK],
        },
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    while True:
        described = sagemaker.describe_training_job(TrainingJobName=name)
        if described["TrainingJobStatus"] != "InProgress":
            break
        time.sleep(0.02)
    if described["TrainingJobStatus"] != "Completed":
        raise RuntimeError(f"{name}: {described.get('FailureReason')}")
    return float(find_line(logs, name, "clock").split()[1]) - began


def time_plain(runtime: str, image: str | None) -> float:
    if runtime == "docker":
        assert image is not None
        command = ["docker", "run", "--rm", "--entrypoint", "python3", image, "-c", PRINT_CLOCK]
    else:
        command = [sys.executable, "-c", PRINT_CLOCK]
    began = time.time()
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.split()[1]) - began


def find_local_image() -> str:
    listing = subprocess.run(
        ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"], capture_output=True, text=True, check=True
    ).stdout.split()
    return next(tag for tag in listing if "/pytorch-training:" in tag)


def measure() -> Iterator[str]:
    for runtime in back_ends():
        image = find_local_image() if runtime == "docker" else None
        ours, plain = [], []
        with (
            tempfile.TemporaryDirectory() as folder,
            EmulatorProcess(Path(folder) / "state", runtime=runtime) as emulator,
        ):
            access: dict[str, Any] = {
                "endpoint_url": emulator.endpoint_url,
                "region_name": "us-east-1",
                "aws_access_key_id": "bench",
                "aws_secret_access_key": "bench",
            }
            boto3.client("s3", **access).create_bucket(Bucket=BUCKET)
            sagemaker, logs = boto3.client("sagemaker", **access), boto3.client("logs", **access)
            time_job(sagemaker, logs)  # not counted, because the first job also loads code
            for _ in range(ROUNDS):
                ours.append(time_job(sagemaker, logs))
                plain.append(time_plain(runtime, image))
        job, bare = statistics.median(ours), statistics.median(plain)
        yield f"{runtime:<8} job {job:5.2f} s   plain {bare:5.2f} s   difference {job - bare:+5.2f} s (goal: +0.3 s)"
