"""Idle training job whose rules wait for steps that the benchmark writes.

The benchmark itself writes the steps to S3.
"""

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import boto3

from sdk_compat.demo.training_job import RULES_IMAGE, TRAINING_IMAGE
from sdk_compat.emulator_process import EmulatorProcess

BUCKET = "rules-bench"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
SECONDS = 120.0


class Endpoint(Protocol):
    """An emulator, wherever it runs."""

    @property
    def endpoint_url(self) -> str:
        """The URL for clients."""


@contextmanager
def open_emulator(runtime: str) -> Iterator[EmulatorProcess]:
    """Start an emulator with a bucket, to which smdebug in this process writes."""
    with tempfile.TemporaryDirectory() as folder, EmulatorProcess(Path(folder) / "state", runtime=runtime) as emulator:
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=emulator.endpoint_url, AWS_REGION=REGION)
        build_client(emulator, "s3").create_bucket(Bucket=BUCKET)
        yield emulator


def run_in_a_process(measure: Callable[[str], str], runtime: str) -> str:
    """Call ``measure`` in a new process and return its result.

    smdebug keeps its S3 client as long as its process lives, but each emulator has another address.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(measure, runtime).result()


def build_client(emulator: Endpoint, service: str) -> Any:
    # The type of boto3.client has an overload for each literal service name, and none for a variable name.
    build: Any = boto3.client
    return build(
        service,
        endpoint_url=emulator.endpoint_url,
        region_name=REGION,
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )


def build_rule(rule: str, name: str, **parameters: str) -> dict[str, Any]:
    return {
        "RuleConfigurationName": name,
        "RuleEvaluatorImage": RULES_IMAGE,
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
    }


def build_request(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/Bench",
        "AlgorithmSpecification": {
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-S", "-c", "import time; time.sleep(600)"],
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "DebugHookConfig": {"S3OutputPath": f"s3://{BUCKET}/tensors"},
        "DebugRuleConfigurations": rules,
    }


@contextmanager
def waiting_job(emulator: EmulatorProcess, rules: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the name of a job whose rules all wait for tensors, and stop the job afterwards."""
    sagemaker, logs = build_client(emulator, "sagemaker"), build_client(emulator, "logs")
    name = f"bench-{uuid.uuid4().hex[:8]}"
    sagemaker.create_training_job(**build_request(name, rules))

    def count_waiting() -> int:
        found = logs.describe_log_groups(logGroupNamePrefix="/aws/sagemaker/ProcessingJobs")["logGroups"]
        if not found:
            return 0
        # The events of all jobs, because moto ignores logStreamNamePrefix.
        events = logs.filter_log_events(logGroupName="/aws/sagemaker/ProcessingJobs", filterPattern='"waits for"')
        return sum(event["logStreamName"].startswith(name) for event in events["events"])

    try:
        wait_until(lambda: count_waiting() == len(rules), lambda: read_rules(emulator, name))
        yield name
    finally:
        sagemaker.stop_training_job(TrainingJobName=name)
        wait_until(lambda: _has_ended(sagemaker, name))


def read_rules(emulator: EmulatorProcess, name: str) -> list[dict[str, Any]]:
    described = build_client(emulator, "sagemaker").describe_training_job(TrainingJobName=name)
    found: list[dict[str, Any]] = described["DebugRuleEvaluationStatuses"]
    return found


def wait_until(true: Callable[[], bool], what: Callable[[], object] = lambda: "it") -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {SECONDS:g} s for {what()}")
        time.sleep(0.05)


def _has_ended(sagemaker: Any, name: str) -> bool:
    described = sagemaker.describe_training_job(TrainingJobName=name)
    statuses = {each["RuleEvaluationStatus"] for each in described["DebugRuleEvaluationStatuses"]}
    return described["TrainingJobStatus"] == "Stopped" and not statuses & {"InProgress", "Stopping"}
