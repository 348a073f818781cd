"""Tests of docs/coverage.md: claims about Create's members, against answers."""

import copy
import re
from functools import partial
from random import Random
from typing import Any, cast

import pytest
from botocore.model import ListShape, StructureShape

from docs_site.coverage import NO_EFFECT, find_describer, list_members
from emulator.operations import find_operations
from emulator.service_model import load_service_model
from tests.integration.emulator.gateway.job_gateway import JobGateway
from tests.unit.emulator.gateway.generated_requests import build_request
from tests.waiting import wait_until

# moto stores and describes pipelines.
CREATES = [name for name in sorted(find_operations()) if name.startswith("Create") and name != "CreatePipeline"]
# Most members of a tuning job are those of its jobs' definition, which is stored and described as a whole: by day every
# thirty-second of them; and every sixth of a training job's own.
BY_DAY = {"CreateHyperParameterTuningJob": 32, "CreateTrainingJob": 6}
CASES = [pytest.param(name, 1, marks=pytest.mark.nightly if name in BY_DAY else ()) for name in CREATES]
CASES += [pytest.param(name, every) for name, every in BY_DAY.items()]
MISSING = object()
ROLE = "arn:aws:iam::123456789012:role/x"
RESOURCES = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1}
CHANNEL = {
    "ChannelName": "train",
    "InputMode": "Pipe",
    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://echo/data"}},
}
TRAINING = {
    "AlgorithmSpecification": {"TrainingImage": "no-such-image:1", "TrainingInputMode": "File"},
    "RoleArn": ROLE,
    "OutputDataConfig": {"S3OutputPath": "s3://echo/out"},
    "ResourceConfig": RESOURCES,
    "StoppingCondition": {"MaxRuntimeInSeconds": 60},
}
GROUP = {"InstanceGroupName": "group", "InstanceType": "ml.m5.large", "InstanceCount": 1}
METRIC = {"Name": "loss", "Regex": "loss=(.*)"}
DEFINITION = {
    **TRAINING,
    "AlgorithmSpecification": {**TRAINING["AlgorithmSpecification"], "MetricDefinitions": [METRIC]},  # type: ignore[dict-item]
    "DefinitionName": "one",
    "HyperParameterRanges": {"CategoricalParameterRanges": [{"Name": "depth", "Values": ["1", "2"]}]},
    "TuningObjective": {"Type": "Minimize", "MetricName": "loss"},
}
LIMITS = {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1}
# The smallest request of each operation that is accepted. One that is not here is generated.
BASES: dict[str, dict[str, Any]] = {
    "CreateTrainingJob": TRAINING,
    "CreateProcessingJob": {
        "AppSpecification": {"ImageUri": "no-such-image:1"},
        "ProcessingResources": {"ClusterConfig": RESOURCES},
        "RoleArn": ROLE,
    },
    "CreateHyperParameterTuningJob": {
        "HyperParameterTuningJobConfig": {"Strategy": "Random", "ResourceLimits": LIMITS},
        "TrainingJobDefinition": DEFINITION,
    },
}
# Where a generated value breaks what an operation checks beside the model: by the end of the member's path.
VALUES: dict[str, Any] = {
    "EnableSessionTagChaining": True,
    "InstanceCount": 1,
    "S3Uri": "s3://echo/data",
    "S3OutputPath": "s3://echo/out",
    "S3InputMode": "File",
    "S3CompressionType": "None",
    "S3DataType": "S3Prefix",
    "MaxRuntimeInSeconds": 120,
    "InstanceGroupNames": "group",
    "InstanceGroupName": "group",
    "MinValue": "1",
    "MaxValue": "2",
    "ScalingType": "Linear",
    "HyperParameterTuningJobName": "parent",
    "ProfilingIntervalInMilliseconds": 500,
}
# What has to stand beside a member, by a pattern of its path; of a tuning job's definition, below the definition.
BESIDE: dict[str, dict[str, Any]] = {
    r"InputDataConfig\.(?!DataSource\.(File|Data)).*": {"InputDataConfig": [CHANNEL]},
    r"ResourceConfig\.InstanceGroups.*|InputDataConfig\..*InstanceGroupNames": {
        "ResourceConfig": {"VolumeSizeInGB": 1, "InstanceGroups": [GROUP]},
    },
    r"EnableManagedSpotTraining|StoppingCondition\.MaxWaitTimeInSeconds": {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
    },
    r"ProcessingInputs\.(?!DatasetDefinition).*": {
        "ProcessingInputs": [
            {
                "InputName": "in",
                "S3Input": {
                    "S3Uri": "s3://echo/data",
                    "LocalPath": "/opt/ml/processing/in",
                    "S3DataType": "S3Prefix",
                    "S3InputMode": "File",
                },
            }
        ]
    },
    r"ProcessingOutputConfig\.Outputs\..*": {
        "ProcessingOutputConfig": {
            "Outputs": [
                {
                    "OutputName": "out",
                    "S3Output": {
                        "S3Uri": "s3://echo/out",
                        "LocalPath": "/opt/ml/processing/out",
                        "S3UploadMode": "EndOfJob",
                    },
                }
            ]
        }
    },
    r".*FeatureStoreOutput.*": {
        "ProcessingOutputConfig": {"Outputs": [{"OutputName": "out", "AppManaged": True}]},
    },
    r"WarmStartConfig\.WarmStartType": {
        "WarmStartConfig": {"ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "parent"}]}
    },
}
DEFINITION_OF_SEVERAL, DEFINITION_OF_ONE = "TrainingJobDefinitions.", "TrainingJobDefinition."


@pytest.fixture(scope="module")
def echo(job_gateway: JobGateway) -> JobGateway:
    job_gateway.harness.s3.create_bucket("echo")
    job_gateway.harness.s3.put("echo", "data/1", b"x")
    parent = BASES["CreateHyperParameterTuningJob"] | {"HyperParameterTuningJobName": "parent"}
    job_gateway.ask("CreateHyperParameterTuningJob", parent)
    describe = partial(job_gateway.ask, "DescribeHyperParameterTuningJob", {"HyperParameterTuningJobName": "parent"})
    wait_until(lambda: describe()[1]["HyperParameterTuningJobStatus"] == "Failed", describe)
    return job_gateway


def create_experiment(echo: JobGateway, config: dict[str, str]) -> None:
    """Create what an ExperimentConfig names."""
    if name := config.get("ExperimentName"):
        echo.ask("CreateExperiment", {"ExperimentName": name})
    if trial := config.get("TrialName"):
        echo.ask("CreateExperiment", {"ExperimentName": "any"})
        echo.ask("CreateTrial", {"TrialName": trial, "ExperimentName": "any"})


@pytest.mark.parametrize(("operation", "every"), CASES)
def test_members_fare_as_the_page_says(operation: str, every: int, echo: JobGateway) -> None:
    shape = load_service_model().operation_model(operation).input_shape
    describer = find_describer(operation)
    assert shape is not None
    assert describer is not None, "what is created has to be described"
    name_member = f"{operation.removeprefix('Create')}Name"
    wrong: list[tuple[Any, ...]] = []
    members = [each for each in list_members(operation) if each.is_leaf]
    # One definition's members are those of several.
    for number, member in enumerate(each for each in members if not each.path.startswith(DEFINITION_OF_SEVERAL)):
        refused = member.fate.startswith("refused")
        in_part = operation == "CreateTrainingJob" or member.path.startswith(DEFINITION_OF_ONE)
        if number % every and in_part and not refused:
            continue
        name = f"echo-{every}-{number}"
        request = build_with_member(operation, shape, member.path) | {name_member: name}
        create_experiment(echo, request.get("ExperimentConfig", {}))
        status, created = echo.ask(operation, request)
        if refused:
            if status != 400:
                wrong.append((member, status, created))
            continue
        asked = look_up(request, member.path)
        _, described = echo.ask(describer, {name_member: name})
        shown = look_up(described, member.path)
        expected = MISSING if member.fate == NO_EFFECT or member.path.startswith("Tags.") else asked
        if status != 200 or asked is MISSING or shown != expected:
            wrong.append((member, status, created, asked, shown))
    assert wrong == []


@pytest.mark.parametrize(
    ("operation", "request_", "said"),
    [
        ("ListTags", {"NextToken": "abc"}, "Invalid NextToken"),
        ("Search", {"Resource": "TrainingJob", "CrossAccountFilterOption": "CrossAccount"}, "accounts share nothing"),
        ("StartPipelineExecution", {"PipelineName": "p", "MlflowExperimentName": "e"}, "there is no MLflow here"),
        ("ListPipelineExecutions", {"PipelineName": "p", "PipelineVersionAlias": "latest"}, "'p' does not exist"),
    ],
)
def test_what_nothing_could_be_done_with_is_refused(
    echo: JobGateway, operation: str, request_: dict[str, Any], said: str
) -> None:
    if operation == "ListTags":
        _, described = echo.ask("DescribeHyperParameterTuningJob", {"HyperParameterTuningJobName": "parent"})
        request_ = request_ | {"ResourceArn": described["HyperParameterTuningJobArn"]}
        status, listed = echo.ask(operation, {"ResourceArn": request_["ResourceArn"], "MaxResults": 50})
        assert (status, listed["Tags"]) == (200, [])
    if operation == "StartPipelineExecution":
        request_ = request_ | {"ClientRequestToken": "t" * 32}
    status, refused = echo.ask(operation, request_)
    assert status == 400
    assert said in refused["message"]


def build_with_member(operation: str, shape: StructureShape, path: str) -> dict[str, Any]:
    """Build a request with a value at ``path``, and no more than has to stand beside it."""
    request = copy.deepcopy(BASES.get(operation) or build_request(shape, Random(0), full=False))
    place = request["TrainingJobDefinition"] if path.startswith(DEFINITION_OF_ONE) else request
    for pattern, beside in BESIDE.items():
        if re.fullmatch(pattern, path.removeprefix(DEFINITION_OF_ONE)):
            place |= copy.deepcopy(beside)
    add_member(request, shape, path.split("."))
    return request


def add_member(inside: dict[str, Any], shape: StructureShape, names: list[str]) -> None:
    name, *rest = names
    member = shape.members[name]
    entry = member
    while entry.type_name == "list":
        entry = cast("ListShape", entry).member
    if not inside.get(name):
        built = settle(build_request(entry, Random(0), full=not rest), name)
        inside[name] = [built] if entry is not member else built
    if rest:
        found = inside[name][0] if isinstance(inside[name], list) else inside[name]
        add_member(found, cast("StructureShape", entry), rest)


def settle(value: Any, name: str = "") -> Any:
    """Put values into what was generated that operations accept, too."""
    if isinstance(value, dict):
        return {key: settle(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [settle(entry, name) for entry in value]
    return VALUES.get(name, value)


def look_up(value: Any, path: str) -> Any:
    """Find what is at a path, in the first entry of each list."""
    for name in path.split("."):
        value = value[0] if isinstance(value, list) and value else value
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value
