"""Tests of accounts and partitions, and of a job's own account."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.commands import run_command
from tests.forked_emulator import ForkedEmulator
from tests.waiting import wait_until

DEFAULT, OTHER, THIRD = "111111111111", "222222222222", "333333333333"
SCRIPT = "import boto3; print('I am', boto3.client('sts').get_caller_identity()['Account'])"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("accounts") / "state"


@pytest.fixture(scope="module")
def emulator(state: Path) -> Iterator[ForkedEmulator]:
    with ForkedEmulator(state, runtime="process", account_id=DEFAULT) as running:
        yield running


def client(
    emulator: ForkedEmulator, service: Any, key: str, region: str = "us-east-1", secret: str = "any", token: str = ""
) -> Any:
    return boto3.client(
        service,
        endpoint_url=emulator.endpoint_url,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token or None,
    )


def train(emulator: ForkedEmulator, key: str, *, region: str = "us-east-1", script: str = SCRIPT) -> str:
    """Start a job, and return its ARN."""
    bucket = f"bucket-{key}-{region}"
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client(emulator, "s3", key, region).create_bucket(Bucket=bucket, **place)
    answer = client(emulator, "sagemaker", key, region).create_training_job(
        TrainingJobName="job",
        AlgorithmSpecification={
            "TrainingImage": "pytorch-training:2.8.0-cpu-py312",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-c", script],
        },
        RoleArn=f"arn:aws:iam::{DEFAULT}:role/Training",
        OutputDataConfig={"S3OutputPath": f"s3://{bucket}/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
    )
    return str(answer["TrainingJobArn"])


def wait_until_completed(emulator: ForkedEmulator, key: str, region: str = "us-east-1") -> None:
    sagemaker = client(emulator, "sagemaker", key, region)
    describe = partial(sagemaker.describe_training_job, TrainingJobName="job")
    wait_until(lambda: describe()["TrainingJobStatus"] == "Completed", describe)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("region", "partition"),
    [("cn-north-1", "aws-cn"), pytest.param("us-gov-west-1", "aws-us-gov", marks=pytest.mark.nightly)],
)
def test_regions_of_other_partitions(emulator: ForkedEmulator, region: str, partition: str) -> None:
    started = train(emulator, OTHER, region=region, script="pass")
    assert started == f"arn:{partition}:sagemaker:{region}:{OTHER}:training-job/job"
    wait_until_completed(emulator, OTHER, region)
    elsewhere = client(emulator, "sagemaker", OTHER, "eu-west-1")
    for ask in (elsewhere.describe_training_job, elsewhere.stop_training_job, elsewhere.delete_training_job):
        with pytest.raises(
            ClientError, match=rf"Requested resource not found\. job is in .*{region}.*: ask there, with"
        ):
            ask(TrainingJobName="job")


def test_assumed_role_acts_in_its_account(emulator: ForkedEmulator) -> None:
    assumed = client(emulator, "sts", "anybody").assume_role(
        RoleArn=f"arn:aws:iam::{THIRD}:role/Training", RoleSessionName="session"
    )["Credentials"]
    credentials = {"secret": assumed["SecretAccessKey"], "token": assumed["SessionToken"]}
    identity = client(emulator, "sts", assumed["AccessKeyId"], **credentials).get_caller_identity()
    assert identity["Account"] == THIRD
    sagemaker = client(emulator, "sagemaker", assumed["AccessKeyId"], **credentials)
    model = sagemaker.create_model(ModelName="m", ExecutionRoleArn=f"arn:aws:iam::{THIRD}:role/Training")
    assert model["ModelArn"].split(":")[4] == THIRD
    assert sagemaker.list_training_jobs()["TrainingJobSummaries"] == []
    assert client(emulator, "sts", "anybody").get_caller_identity()["Account"] == DEFAULT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "signs_as"), [pytest.param([], "SageMakerRole", marks=pytest.mark.nightly), (["--role", "Own"], "Own")]
)
def test_a_command_runs_as_an_account(emulator: ForkedEmulator, role: list[str], signs_as: str, tmp_path: Path) -> None:
    state_dir = ["--state-dir", str(emulator.state_dir), "--account", OTHER]
    script = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
    run = [sys.executable, "-m", "emulator", "run", *state_dir, *role, "--", sys.executable, "-c", script]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "AWS_DEFAULT_REGION": "us-east-1"}
    said = subprocess.run(run, capture_output=True, text=True, check=True, timeout=400, env=environment).stdout
    assert said == f"arn:aws:sts::{OTHER}:assumed-role/{signs_as}/SageMaker\n"


@pytest.mark.slow
def test_a_shell_signs_as_an_account(emulator: ForkedEmulator, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emulator", "env", "--state-dir", str(emulator.state_dir), "--account"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([*command, OTHER], capture_output=True, text=True, check=True, timeout=400, env=environment)
    assert f"export AWS_ACCESS_KEY_ID={OTHER}\n" in done.stdout
    none = run_command("env", "--state-dir", str(emulator.state_dir), "--account", "12", code=2)
    assert "Invalid value for '--account': '12' has to be 12 digits." in none.stderr


# The last one, for it stops the emulator.
@pytest.mark.slow
def test_accounts_have_jobs_of_their_own_which_outlast_a_restart(state: Path, emulator: ForkedEmulator) -> None:
    arns = [train(emulator, "anybody", script="pass"), train(emulator, OTHER)]
    assert arns == [f"arn:aws:sagemaker:us-east-1:{account}:training-job/job" for account in (DEFAULT, OTHER)]
    for key, account in (("anybody", DEFAULT), (OTHER, OTHER)):
        wait_until_completed(emulator, key)
        (job,) = client(emulator, "sagemaker", key).list_training_jobs()["TrainingJobSummaries"]
        assert job["TrainingJobArn"].split(":")[4] == account
    logs = client(emulator, "logs", OTHER)
    events = logs.filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs")["events"]
    assert f"I am {OTHER}" in [event["message"] for event in events]
    assert client(emulator, "sagemaker", THIRD).list_training_jobs()["TrainingJobSummaries"] == []
    command = ["events", "--json", "--state-dir", str(state)]
    sent = run_command(*command).stdout.splitlines()
    assert {json.loads(line)["Content"]["account"] for line in sent} == {DEFAULT}, "those of the emulator that runs"
    emulator.stop()
    refused = run_command(*command, code=1)
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 1)
    assert refused.stderr.endswith(
        f"events of several accounts, {DEFAULT}, {OTHER}, {THIRD}: choose one with --account.\n"
    )
    sent = run_command(*command, "--account", OTHER).stdout.splitlines()
    assert {json.loads(line)["Content"]["account"] for line in sent} == {OTHER}
    with ForkedEmulator(state, runtime="process", account_id=DEFAULT) as again:
        for key, arn in zip(("anybody", OTHER), arns, strict=True):
            found = client(again, "sagemaker", key).describe_training_job(TrainingJobName="job")
            assert found["TrainingJobArn"] == arn
