"""Faults that a user asks for: clients see them, jobs outlast those of S3, and everything is as before without them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import requests
from botocore.exceptions import ClientError, ResponseStreamingError
from click.testing import CliRunner

from emulator.cli.commands import main
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLE = "arn:aws:iam::123456789012:role/r"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEmulator]:
    with RunningEmulator(tmp_path_factory.mktemp("faults") / "state", runtime="process") as running:
        running.client("s3").create_bucket(Bucket="faults")
        yield running


def ask(emulator: RunningEmulator, method: str, asked: Any = None) -> Any:
    return requests.request(method, f"{emulator.endpoint_url}/_emulator/faults", json=asked, timeout=60)


def create_job(emulator: RunningEmulator, name: str) -> str:
    emulator.client("sagemaker").create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "smdebug-emulator/pytorch-training:latest",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-c", "open('/opt/ml/model/m', 'w').write('model')"],
        },
        OutputDataConfig={"S3OutputPath": "s3://faults/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
    )
    return name


def wait_for_end(emulator: RunningEmulator, name: str) -> Any:
    sagemaker = emulator.client("sagemaker")

    def find_ended() -> Any:
        described = sagemaker.describe_training_job(TrainingJobName=name)
        return described if described["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None

    return wait_until(find_ended)


def test_requests_to_s3_fail_are_slow_and_are_cut(emulator: RunningEmulator) -> None:
    s3 = emulator.client("s3")
    s3.put_object(Bucket="faults", Key="k", Body=b"0123456789" * 300_000)
    assert ask(emulator, "PUT", {"s3": {"error": 1, "times": 4}}).status_code == 200
    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket="faults", Key="k")
    assert caught.value.response["Error"]["Code"] == "SlowDown"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    # Other services, and the emulator's own pages, are not harmed.
    emulator.client("sagemaker").list_training_jobs()
    assert ask(emulator, "GET").json()["s3"]["struck"]["error"] >= 1
    ask(emulator, "PUT", {"s3": {"truncate": 1, "times": 1, "delay": "150ms"}})
    began = time.monotonic()
    with pytest.raises(ResponseStreamingError):
        s3.get_object(Bucket="faults", Key="k")["Body"].read()
    assert time.monotonic() - began >= 0.15
    assert ask(emulator, "DELETE").json() == {}
    assert len(s3.get_object(Bucket="faults", Key="k")["Body"].read()) == 3_000_000


def test_jobs_outlast_faults_of_s3_and_meet_a_lack_of_capacity(emulator: RunningEmulator) -> None:
    ask(emulator, "PUT", {"s3": {"error": 0.3}})
    names = [create_job(emulator, f"outlasts-{number}") for number in range(3)]
    for name in names:
        done = wait_for_end(emulator, name)
        assert done["TrainingJobStatus"] == "Completed", done
    ask(emulator, "PUT", {"jobs": {"capacity": 1, "times": 1}})
    failed = wait_for_end(emulator, create_job(emulator, "no-capacity"))
    assert failed["FailureReason"].startswith("CapacityError: Unable to provision requested ML compute capacity.")
    assert wait_for_end(emulator, create_job(emulator, "capacity"))["TrainingJobStatus"] == "Completed"
    ask(emulator, "DELETE")


@pytest.mark.parametrize("asked", [[], {"s3": 1}, {"s3": {}}, {"s3": {"error": 7}}, {"s3": {"errors": 1}}, None])
def test_faults_that_are_none_are_refused(emulator: RunningEmulator, asked: Any) -> None:
    answer = ask(emulator, "PUT", asked)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


def test_the_command_line_refuses_what_is_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["start", "--state-dir", str(tmp_path), "--fault", "s3:error=5"])
    assert done.exit_code == 2
    assert "give a share from 0 to 1" in done.output
