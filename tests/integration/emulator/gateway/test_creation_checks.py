"""Tests of what the creation of a training job checks."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.emulator.gateway.client_errors import error_of
from tests.unit.emulator.gateway.test_protocol import REQUEST

ONE = {"InstanceType": "ml.m5.large", "InstanceCount": 1}


def group(name: str, count: int) -> dict[str, Any]:
    return {"InstanceGroupName": name, "InstanceType": "ml.m5.large", "InstanceCount": count}


def channel_for(group_name: str) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://bkt/x", "InstanceGroupNames": [group_name]}
    return {"ChannelName": "train", "DataSource": {"S3DataSource": source}}


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "ValidationException", "Exactly one of"),
        (
            {"AlgorithmSpecification": {"TrainingInputMode": "File", "AlgorithmName": "mine"}},
            "ValidationException",
            "'mine'",
        ),
        (
            {"InputDataConfig": [{"ChannelName": "train", "DataSource": {}}] * 2},
            "ValidationException",
            "Channel names must be unique. Used more than once: train.",
        ),
        (
            {"DebugRuleConfigurations": [{"RuleConfigurationName": "r", "RuleEvaluatorImage": "i"}] * 2},
            "ValidationException",
            "Used more than once: r.",
        ),
        (
            {
                "DebugRuleConfigurations": [
                    {"RuleConfigurationName": f"r{i}", "RuleEvaluatorImage": "i"} for i in range(11)
                ],
                "ProfilerRuleConfigurations": [
                    {"RuleConfigurationName": f"p{i}", "RuleEvaluatorImage": "i"} for i in range(10)
                ],
            },
            "ResourceLimitExceeded",
            "at most 20 rules; this request has 21",
        ),
        ({"ResourceConfig": ONE | {"InstanceCount": 17}}, "ResourceLimitExceeded", "at most 16 instances"),
        ({"ResourceConfig": {"InstanceGroups": [group("a", 9), group("b", 8)]}}, "ResourceLimitExceeded", "for 17."),
        ({"ResourceConfig": ONE | {"InstanceCount": 0}}, "ValidationException", "InstanceCount must be 1 or more"),
        ({"ResourceConfig": {"InstanceGroups": [group("a", 0)]}}, "ValidationException", "InstanceCount must be 1"),
        ({"ResourceConfig": {"InstanceCount": 1}}, "ValidationException", "must have InstanceType and InstanceCount"),
        ({"ResourceConfig": ONE | {"InstanceGroups": [group("a", 1)]}}, "ValidationException", "must have neither"),
        (
            {"ResourceConfig": {"InstanceGroups": [group("a", 1), group("a", 1)]}},
            "ValidationException",
            "InstanceGroupName must be unique. Used more than once: a.",
        ),
        (
            {"ResourceConfig": {"InstanceGroups": [group("a", 1)]}, "InputDataConfig": [channel_for("b")]},
            "ValidationException",
            "is for the instance groups b, which ResourceConfig.InstanceGroups does not have; it has: a.",
        ),
        ({"InputDataConfig": [channel_for("b")]}, "ValidationException", "does not have; it has: none."),
        *(
            (
                {member: {place: "s3://bkt/x", "LocalPath": path}},
                "ValidationException",
                f"{member}.LocalPath is '{path}'",
            )
            for member, place, path in (
                ("DebugHookConfig", "S3OutputPath", "/opt/ml/input"),
                ("DebugHookConfig", "S3OutputPath", "//opt/ml/./code/../input/config/"),
                ("TensorBoardOutputConfig", "S3OutputPath", "/opt/ml/output"),
                ("TensorBoardOutputConfig", "S3OutputPath", "/opt/ml/output/metrics/sagemaker"),
                ("CheckpointConfig", "S3Uri", "/opt/ml/input/data/train"),
                ("CheckpointConfig", "S3Uri", "/opt/ml/output/failure"),
            )
        ),
    ],
)
def test_what_creation_checks(sagemaker: Any, changes: dict[str, Any], code: str, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**{**REQUEST, **changes})
    assert error_of(caught)[0] == code
    assert text in error_of(caught)[1]


@pytest.mark.parametrize(
    "path", ["/opt/ml/inputs", "/opt/ml/output/tensors", "/opt/ml/output/data", "/opt/ml/checkpoints"]
)
def test_a_local_path_beside_the_services_own_is_taken(sagemaker: Any, path: str) -> None:
    name = f"local-path-{path.rpartition('/')[2]}"
    job = REQUEST | {"TrainingJobName": name, "CheckpointConfig": {"S3Uri": "s3://bkt/c", "LocalPath": path}}
    assert sagemaker.create_training_job(**job)["TrainingJobArn"].endswith(name)


ONLY_SPOT = "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
TOO_SHORT = (
    "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds when "
    "EnableManagedSpotTraining is set to true"
)


@pytest.mark.parametrize(
    ("spot", "condition", "text"),
    [
        (None, {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}, ONLY_SPOT),
        (False, {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}, ONLY_SPOT),
        (True, {"MaxRuntimeInSeconds": 60}, TOO_SHORT),
        (True, {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 59}, TOO_SHORT),
        (True, {"MaxWaitTimeInSeconds": 86_399}, TOO_SHORT),
        (True, {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}, None),
        (True, {"MaxWaitTimeInSeconds": 86_400}, None),
        (False, {"MaxRuntimeInSeconds": 2_419_200}, None),
    ],
)
def test_the_times_of_spot_training(
    sagemaker: Any, spot: bool | None, condition: dict[str, int], text: str | None
) -> None:
    request = REQUEST | {"StoppingCondition": condition}
    if spot is not None:
        request["EnableManagedSpotTraining"] = spot
    if text is None:
        assert sagemaker.create_training_job(**request)["TrainingJobArn"]
        return
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**request)
    assert error_of(caught) == ("ValidationException", text, 400)


@pytest.mark.parametrize(
    ("seconds", "code", "text"),
    [
        (2_419_201, "ResourceLimitExceeded", "'Longest run time for a training job' is 2419200 Seconds"),
        (10**12, "ValidationException", "Member must have value less than or equal to 2147483647"),
    ],
)
def test_no_job_runs_longer_than_28_days(sagemaker: Any, seconds: int, code: str, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**REQUEST | {"StoppingCondition": {"MaxRuntimeInSeconds": seconds}})
    assert error_of(caught)[::2] == (code, 400)
    assert text in error_of(caught)[1]


@pytest.mark.parametrize("missing", ["ResourceConfig", "StoppingCondition"])
def test_what_a_container_needs(sagemaker: Any, missing: str) -> None:
    with pytest.raises(ClientError, match=f"{missing} must be given"):
        sagemaker.create_training_job(**{name: value for name, value in REQUEST.items() if name != missing})
