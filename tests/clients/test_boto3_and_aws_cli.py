"""Tests of boto3 waiters and paginators, the AWS CLI (version 1) and regions."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import WaiterError

from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

HOME, TUNED = "eu-west-1", "us-west-2"
BUCKET, BUCKET_OF_TUNED = "waiters", "tuned"
PARTITIONS = {HOME: "aws", TUNED: "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov"}
IMAGE = "pytorch-training:2.13.0-cpu-py311"
WAITER = {"Delay": 1, "MaxAttempts": 500}
CLUSTER = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
COMMANDS = {"completes": "print('done')", "fails": "raise SystemExit(3)", "goes-on": "import time; time.sleep(600)"}


def build_training(name: str, command: str, region: str = HOME, bucket: str = BUCKET) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "AlgorithmSpecification": {
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-c", command],
        },
        "RoleArn": f"arn:{PARTITIONS[region]}:iam::123456789012:role/Training",
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/output"},
        "ResourceConfig": CLUSTER,
        "StoppingCondition": {"MaxRuntimeInSeconds": 900},
    }


def build_processing(name: str, command: str) -> dict[str, Any]:
    return {
        "ProcessingJobName": name,
        "AppSpecification": {"ImageUri": IMAGE, "ContainerEntrypoint": ["python3", "-c", command]},
        "RoleArn": "arn:aws:iam::123456789012:role/Processing",
        "ProcessingResources": {"ClusterConfig": CLUSTER},
    }


def build_tuning(name: str) -> dict[str, Any]:
    training = build_training("", "", TUNED, BUCKET_OF_TUNED)
    definition = {key: training[key] for key in ("RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")}
    definition["AlgorithmSpecification"] = {
        "TrainingImage": "nobody-built:1",
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*)"}],
    }
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 3},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0", "MaxValue": "1"}]},
        },
        "TrainingJobDefinition": definition,
    }


@pytest.fixture(scope="module")
def sagemaker(served: RunningEmulator) -> Any:
    """A client in a region with a training job and a processing job of each outcome; tuning jobs are in another."""
    served.client("s3", HOME).create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": HOME})
    there = {"LocationConstraint": TUNED}
    served.client("s3", TUNED).create_bucket(Bucket=BUCKET_OF_TUNED, CreateBucketConfiguration=there)
    client = served.client("sagemaker", HOME)
    for name, command in COMMANDS.items():
        client.create_training_job(**build_training(name, command), Tags=[{"Key": "name", "Value": name}])
        client.create_processing_job(**build_processing(name, command))
    for name in ("tunes", "tunes-too", "tunes-as-well"):
        served.client("sagemaker", TUNED).create_hyper_parameter_tuning_job(**build_tuning(name))
    return client


@pytest.mark.any_back_end
@pytest.mark.parametrize("kind", ["training", "processing"])
def test_waiters_end_with_their_jobs(sagemaker: Any, kind: str) -> None:
    waiter = sagemaker.get_waiter(f"{kind}_job_completed_or_stopped")
    argument, status = f"{kind.title()}JobName", f"{kind.title()}JobStatus"
    waiter.wait(**{argument: "completes"}, WaiterConfig=WAITER)
    with pytest.raises(WaiterError, match=f'"{status}" we matched expected path: "Failed"'):
        waiter.wait(**{argument: "fails"}, WaiterConfig=WAITER)
    with pytest.raises(WaiterError, match="service error code: ValidationException"):
        waiter.wait(**{argument: "nobody-made"}, WaiterConfig=WAITER)
    getattr(sagemaker, f"stop_{kind}_job")(**{argument: "goes-on"})
    waiter.wait(**{argument: "goes-on"}, WaiterConfig=WAITER)
    describe = getattr(sagemaker, f"describe_{kind}_job")
    assert [describe(**{argument: name})[status] for name in COMMANDS] == ["Completed", "Failed", "Stopped"]


@pytest.mark.any_back_end
def test_a_waiter_finds_a_job_by_the_name_in_its_arn(sagemaker: Any) -> None:
    request = build_processing("Named-In-Capitals", COMMANDS["completes"])
    asked = sagemaker.create_processing_job(**request)["ProcessingJobArn"].rpartition("/")[2]
    assert asked == "named-in-capitals"
    sagemaker.get_waiter("processing_job_completed_or_stopped").wait(ProcessingJobName=asked, WaiterConfig=WAITER)
    assert sagemaker.describe_processing_job(ProcessingJobName=asked)["ProcessingJobName"] == "Named-In-Capitals"
    sagemaker.delete_processing_job(ProcessingJobName=asked)


@pytest.mark.any_back_end
def test_lists_of_a_region_come_in_pages(served: RunningEmulator, sagemaker: Any) -> None:
    tuned = served.client("sagemaker", TUNED)

    def read_pages(operation: str, members: str, kind: str, client: Any = sagemaker, **request: str) -> list[list[str]]:
        pages = client.get_paginator(operation).paginate(**request, PaginationConfig={"PageSize": 2})
        return [[each[f"{kind}JobName"] for each in page[members]] for page in pages]

    by_name = {"SortBy": "Name", "SortOrder": "Ascending"}
    for kind in ("Training", "Processing"):
        found = read_pages(f"list_{kind.lower()}_jobs", f"{kind}JobSummaries", kind, **by_name)
        assert found == [["completes", "fails"], ["goes-on"]]
    tuning = read_pages(
        "list_hyper_parameter_tuning_jobs", "HyperParameterTuningJobSummaries", "HyperParameterTuning", tuned, **by_name
    )
    assert tuning == [["tunes", "tunes-as-well"], ["tunes-too"]]

    def has_failed() -> bool:
        described = tuned.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="tunes")
        return str(described["HyperParameterTuningJobStatus"]) == "Failed"

    wait_until(has_failed, "the tuning job of an image that nobody built")
    trained = read_pages(
        "list_training_jobs_for_hyper_parameter_tuning_job",
        "TrainingJobSummaries",
        "Training",
        tuned,
        HyperParameterTuningJobName="tunes",
    )
    assert [len(page) for page in trained] == [2, 1]
    assert all(name.startswith("tunes-") for page in trained for name in page)
    pages = sagemaker.get_paginator("search").paginate(Resource="TrainingJob", PaginationConfig={"PageSize": 2})
    assert [len(page["Results"]) for page in pages] == [2, 1]
    arn = sagemaker.describe_training_job(TrainingJobName="fails")["TrainingJobArn"]
    tags = sagemaker.get_paginator("list_tags").paginate(ResourceArn=arn)
    assert list(tags.search("Tags[].Value")) == ["fails"]


@pytest.mark.any_back_end
@pytest.mark.parametrize("region", ["eu-west-1", "cn-north-1", "us-gov-west-1"])
def test_regions_have_lists_and_arns_of_their_own(served: RunningEmulator, region: str) -> None:
    partition = PARTITIONS[region]
    bucket, name = f"of-{region}", f"of-{region}"
    s3, sagemaker = served.client("s3", region), served.client("sagemaker", region)
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
    created = sagemaker.create_training_job(**build_training(name, "print('done')", region, bucket))
    assert created["TrainingJobArn"] == f"arn:{partition}:sagemaker:{region}:123456789012:training-job/{name}"
    sagemaker.get_waiter("training_job_completed_or_stopped").wait(TrainingJobName=name, WaiterConfig=WAITER)
    listed = sagemaker.list_training_jobs(NameContains="of-")["TrainingJobSummaries"]
    assert [job["TrainingJobName"] for job in listed] == [name]
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] == region
    identity = served.client("sts", region).get_caller_identity()["Arn"]
    assert identity.startswith(f"arn:{partition}:sts::123456789012:")
    (group,) = served.client("logs", region).describe_log_groups(logGroupNamePrefix="/aws/sagemaker/T")["logGroups"]
    assert group["arn"].startswith(f"arn:{partition}:logs:{region}:123456789012:log-group:/aws/sagemaker/TrainingJobs")


@pytest.mark.any_back_end
def test_metrics_of_a_run_are_those_of_its_trial_component(served: RunningEmulator) -> None:
    sagemaker, metrics = served.client("sagemaker"), served.client("sagemaker-metrics")
    sagemaker.create_trial_component(TrialComponentName="measured")
    values = [{"MetricName": "f1", "Timestamp": 1_700_000_000 + at, "Step": at, "Value": at / 4} for at in (2, 3)]
    assert metrics.batch_put_metrics(TrialComponentName="measured", MetricData=values)["Errors"] == []
    (found,) = sagemaker.describe_trial_component(TrialComponentName="measured")["Metrics"]
    assert (found["MetricName"], found["Last"], found["Count"]) == ("f1", 0.75, 2)


# The program `aws`, with one command after the other in one process: each would import the CLI anew.
CLI = """
import contextlib, io, json, sys
from awscli.clidriver import create_clidriver
for line in sys.stdin:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = create_clidriver().main(json.loads(line))
    print(json.dumps([code, out.getvalue(), error.getvalue()]), flush=True)
"""


@pytest.fixture
def cli(client_environment: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CLI]
    process = subprocess.Popen(
        command, env=client_environment, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.communicate(timeout=120)


@pytest.mark.any_back_end
def test_aws_cli_runs_a_job(served: RunningEmulator, cli: subprocess.Popen[str], tmp_path: Path) -> None:
    region, bucket = "cn-north-1", "of-the-cli"

    def aws(*arguments: str, code: int = 0) -> str:
        assert cli.stdin is not None
        assert cli.stdout is not None
        cli.stdin.write(json.dumps(["--output", "json", "--region", region, *arguments]) + "\n")
        cli.stdin.flush()
        ended, out, error = json.loads(cli.stdout.readline())
        assert ended == code, out + error
        return str(error if code else out)

    # Version 3 of the SageMaker SDK sends a program that way, too.
    (tmp_path / "start.sh").write_text('#!/bin/bash\necho "said by a job: $0" && cp "$0" /opt/ml/model\n')
    aws("s3", "mb", f"s3://{bucket}")
    aws("s3", "cp", "start.sh", f"s3://{bucket}/data/start.sh")
    request = build_training("by-cli", "", region, bucket)
    program = "/opt/ml/input/data/training/start.sh"
    request["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": ["/bin/bash"],
        "ContainerArguments": ["-c", f"chmod +x {program} && {program}"],
    }
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/data/"}
    request["InputDataConfig"] = [{"ChannelName": "training", "DataSource": {"S3DataSource": source}}]
    (tmp_path / "request.json").write_text(json.dumps(request))
    created = json.loads(aws("sagemaker", "create-training-job", "--cli-input-json", "file://request.json"))
    assert created == {"TrainingJobArn": f"arn:aws-cn:sagemaker:{region}:123456789012:training-job/by-cli"}
    # The CLI's own waiter asks every two minutes.
    waiter = served.client("sagemaker", region).get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName="by-cli", WaiterConfig=WAITER)
    aws("sagemaker", "wait", "training-job-completed-or-stopped", "--training-job-name", "by-cli")
    query = ("--training-job-name", "by-cli", "--query", "[TrainingJobStatus, ModelArtifacts.S3ModelArtifacts]")
    model = f"s3://{bucket}/output/by-cli/output/model.tar.gz"
    assert json.loads(aws("sagemaker", "describe-training-job", *query)) == ["Completed", model]
    assert aws("s3", "ls", model).endswith("model.tar.gz\n")
    log = aws(
        "logs", "filter-log-events", "--log-group-name", "/aws/sagemaker/TrainingJobs", "--query", "events[].message"
    )
    assert f"said by a job: {program}" in json.loads(log)
    listed = json.loads(aws("sagemaker", "list-training-jobs", "--max-items", "1"))
    assert len(listed["TrainingJobSummaries"]) == 1
    message = aws("sagemaker", "stop-training-job", "--training-job-name", "nobody-made", code=255)
    assert "(ValidationException)" in message
