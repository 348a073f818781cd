"""Fuzz test of the emulator's own operations, near good requests.

They differ from good ones in up to three members.
Jobs, executions and tags exist, so that most requests reach what an operation does after its validation.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from moto.moto_api._internal.models import moto_api_backend

from emulator.operations import find_operations
from emulator.service_model import load_service_model
from tests.integration.emulator.gateway.job_gateway import JobGateway, open_job_gateway
from tests.integration.emulator.gateway.test_fuzz import BY_DAY_AND_BY_NIGHT, ODD_VALUES, Fuzz, find_paths, is_answer
from tests.integration.emulator.jobs.job_harness import JobHarness
from tests.unit.emulator.gateway.generated_requests import build_request, replace_member
from tests.waiting import ENDED, wait_until

ARN = "arn:aws:sagemaker:us-east-1:123456789012:training-job/a"
ROLE = "arn:aws:iam::123456789012:role/r"
ODD = (*ODD_VALUES, "\ud800", "0", "1e400", "nan", "9999-12-31T23:59:59Z", "0001-01-01", "a.b.c", "[[[", -(10**18), 0.5)
KINDS = ("TrainingJob", "ProcessingJob", "HyperParameterTuningJob")


def build_training(harness: JobHarness) -> dict[str, Any]:
    """A request whose job fails at once: its image is nobody's."""
    collection = {"CollectionName": "losses", "CollectionParameters": {"save_interval": "5"}}
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{harness.bucket}/data"}
    return harness.request(
        "a",
        AlgorithmSpecification={
            "TrainingImage": "nobody:1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*?);"}],
        },
        HyperParameters={"a": "1"},
        DebugHookConfig={**harness.hook(), "CollectionConfigurations": [collection], "HookParameters": {"a": "b"}},
        DebugRuleConfigurations=[harness.rule("Rule", "pass")],
        ProfilerConfig={"S3OutputPath": f"s3://{harness.bucket}/p", "ProfilingIntervalInMilliseconds": 500},
        InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
        Tags=[{"Key": "k", "Value": "v"}],
    )


def build_good_requests(harness: JobHarness) -> dict[str, dict[str, Any]]:
    training = build_training(harness)
    for_tuning = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")
    cluster = {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
    channel = {"Name": "InputDataConfig.ChannelName", "Operator": "Equals", "Value": "train"}
    return {
        "CreateTrainingJob": training,
        "CreateProcessingJob": {
            "ProcessingJobName": "a",
            "ProcessingResources": {"ClusterConfig": cluster},
            "AppSpecification": {"ImageUri": "nobody:1"},
            "RoleArn": ROLE,
        },
        "CreateHyperParameterTuningJob": {
            "HyperParameterTuningJobName": "a",
            "HyperParameterTuningJobConfig": {
                "Strategy": "Random",
                "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
                "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
                "ParameterRanges": {"IntegerParameterRanges": [{"Name": "y", "MinValue": "1", "MaxValue": "9"}]},
            },
            "TrainingJobDefinition": {name: training[name] for name in for_tuning},
        },
        "Search": {
            "Resource": "TrainingJob",
            "SearchExpression": {
                "Filters": [{"Name": "TrainingJobName", "Operator": "Contains", "Value": "a"}],
                "NestedFilters": [{"NestedPropertyName": "InputDataConfig", "Filters": [channel]}],
                "SubExpressions": [
                    {"Filters": [{"Name": "CreationTime", "Operator": "GreaterThan", "Value": "2020-01-01"}]}
                ],
            },
            "SortBy": "CreationTime",
            "MaxResults": 3,
            "VisibilityConditions": [{"Key": "Tags.k", "Value": "v"}],
        },
        "StartPipelineExecution": {"PipelineName": "a", "ClientRequestToken": "a" * 40},
        "AddTags": {"ResourceArn": ARN, "Tags": [{"Key": "q", "Value": "w"}]},
        "UpdateTrainingJob": {"TrainingJobName": "a", "ProfilerConfig": {"ProfilingIntervalInMilliseconds": 200}},
    }


def build_near_request(name: str, good: dict[str, dict[str, Any]], fuzz: Fuzz, seed: int, random: Random) -> Any:
    """Build a request that is good, or has up to three odd members."""
    shape = load_service_model().operation_model(name).input_shape
    full: dict[str, Any] = build_request(shape, random, full=True) if shape else {}
    if name in good:
        request = copy.deepcopy(good[name])
        request |= {key: value for key, value in full.items() if key not in request and random.random() < 0.1}
        for kind in KINDS:
            if name == f"Create{kind}" and random.random() < 0.8:
                request[f"{kind}Name"] = f"n{seed}"
    else:
        request = {key: random.choice("ab") if key.endswith("Name") else value for key, value in full.items()}
        request |= {"ResourceArn": ARN} if "ResourceArn" in request else {}
        request = {key: random.choice(fuzz.list_seen(key) or [value]) for key, value in request.items()}
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        paths = list(find_paths(request))
        if paths:
            request = replace_member(request, random.choice(paths), random.choice(ODD))
    return request


def list_jobs(gateway: JobGateway) -> Iterator[dict[str, Any]]:
    """Describe every job."""
    for kind in KINDS:
        request: dict[str, Any] = {"MaxResults": 100}
        while True:
            _, page = gateway.ask(f"List{kind}s", request)
            for summary in page[f"{kind}Summaries"]:
                status, described = gateway.ask(f"Describe{kind}", {f"{kind}Name": summary[f"{kind}Name"]})
                assert status == 200, described
                yield {"status": described[f"{kind}Status"], **described}
            if "NextToken" not in page:
                break
            request["NextToken"] = page["NextToken"]


@pytest.mark.slow
@pytest.mark.parametrize("requests", BY_DAY_AND_BY_NIGHT)
def test_no_request_near_a_good_one_is_a_failure_of_the_emulator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, requests: int
) -> None:
    moto_api_backend.reset()
    with open_job_gateway(tmp_path) as job_gateway:
        send_near_requests(job_gateway, requests)
    assert "by a defect of the emulator" not in caplog.text


def send_near_requests(job_gateway: JobGateway, requests: int) -> None:
    harness = job_gateway.harness
    harness.s3.put(harness.bucket, "data/a", b"1")
    good, fuzz, wrong, statuses = build_good_requests(harness), Fuzz(), [], []
    steps = [{"Name": "s", "Type": "Fail", "Arguments": {"ErrorMessage": "no"}}]
    pipeline = {"PipelineName": "a", "RoleArn": ROLE, "ClientRequestToken": "a" * 32}
    definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
    assert job_gateway.ask("CreatePipeline", {**pipeline, "PipelineDefinition": definition})[0] == 200
    for name, request in good.items():
        status, content = job_gateway.ask(name, request)
        fuzz.learn([request, content] if status == 200 else [])
    names = [*find_operations(), *good, *good]
    for seed in range(requests):
        random = Random(seed)
        name = names[seed % len(names)]
        request = build_near_request(name, good, fuzz, seed, random)
        answer = job_gateway.send(name, json.dumps(request).encode())
        statuses.append(answer.status_code)
        if not is_answer(answer.status_code, answer.data):
            wrong.append((seed, name, request, answer.status_code, answer.data[:300]))
        elif answer.status_code == 200:
            fuzz.learn([request, json.loads(answer.data or b"{}")])
    assert wrong == []
    assert statuses.count(200) > requests / 10, "nearly all were refused, which says little about what runs"
    wait_until(lambda: all(job["status"] in ENDED for job in list_jobs(job_gateway)))
    assert [job for job in list_jobs(job_gateway) if "InternalServerError" in job.get("FailureReason", "")] == []


@pytest.mark.parametrize("condition", [{}, {"Key": "Tags.team"}, {"Value": "a"}])
def test_a_visibility_condition_needs_a_key_and_a_value(job_gateway: JobGateway, condition: dict[str, str]) -> None:
    whole = {"Key": "Tags.team", "Value": "a"}
    request = {"Resource": "TrainingJob", "VisibilityConditions": [whole, condition]}
    status, answer = job_gateway.ask("Search", request)
    assert status == 400
    assert "Entry 2 of VisibilityConditions has no" in answer["message"]
    assert job_gateway.ask("Search", {**request, "VisibilityConditions": [whole]})[0] == 200
