"""Tests of DescribeTrainingJob: AWS's defaults, and the profiler's state."""

from typing import Any

import pytest

from emulator.jobs.model.descriptions import describe_training_job
from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.model.training_job import new_training_job

CHANNEL = {"ChannelName": "training", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/d"}}}
RULE = {"RuleConfigurationName": "R", "RuleEvaluatorImage": "rules:latest"}


def describe(**members: Any) -> dict[str, Any]:
    request = {"TrainingJobName": "job", "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}, **members}
    return describe_training_job(new_training_job("123456789012", "us-east-1", "id", request, 1_000), [])


def test_what_a_request_leaves_out_is_filled_in() -> None:
    described = describe(InputDataConfig=[CHANNEL], DebugRuleConfigurations=[RULE])
    assert described["OutputDataConfig"] == {"S3OutputPath": "s3://bkt/out", "KmsKeyId": "", "CompressionType": "GZIP"}
    assert described["InputDataConfig"] == [{**CHANNEL, "CompressionType": "None", "RecordWrapperType": "None"}]
    assert described["DebugRuleConfigurations"] == [{**RULE, "VolumeSizeInGB": 0}]
    for member in ("EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining"):
        assert described[member] is False
    assert describe()["InputDataConfig"] == []
    assert "DebugRuleConfigurations" not in describe()


def test_what_a_request_says_stays() -> None:
    output = {"S3OutputPath": "s3://bkt/out", "KmsKeyId": "key", "CompressionType": "NONE"}
    rule = {**RULE, "VolumeSizeInGB": 5}
    profiler = {"S3OutputPath": "s3://bkt/out", "ProfilingIntervalInMilliseconds": 100}
    described = describe(
        OutputDataConfig=output, DebugRuleConfigurations=[rule], EnableNetworkIsolation=True, ProfilerConfig=profiler
    )
    assert described["OutputDataConfig"] == output
    assert described["DebugRuleConfigurations"] == [rule]
    assert described["EnableNetworkIsolation"] is True
    assert described["ProfilerConfig"] == profiler


@pytest.mark.parametrize(
    ("configuration", "described", "status"),
    [
        (None, None, "Disabled"),
        ({"DisableProfiler": True}, {"DisableProfiler": True}, "Disabled"),
        ({}, {"ProfilingIntervalInMilliseconds": 500}, "Enabled"),
        (
            {"S3OutputPath": "s3://b/p", "DisableProfiler": False},
            {"S3OutputPath": "s3://b/p", "DisableProfiler": False, "ProfilingIntervalInMilliseconds": 500},
            "Enabled",
        ),
    ],
)
def test_profiling_status(configuration: dict[str, Any] | None, described: dict[str, Any] | None, status: str) -> None:
    found = describe() if configuration is None else describe(ProfilerConfig=configuration)
    assert (found.get("ProfilerConfig"), found["ProfilingStatus"]) == (described, status)


def test_each_rule_has_its_status_beside_those_of_its_kind() -> None:
    names = {"DebugRuleConfigurations": "R", "ProfilerRuleConfigurations": "P"}
    rules = {member: [{**RULE, "RuleConfigurationName": name}] for member, name in names.items()}
    evaluations = [
        new_rule_evaluation("1", "r", "job", position, rule, "0a1b2c3d", 2_000)
        for position, (rule,) in enumerate(rules.values())
    ]
    request = {"OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}, "TrainingJobName": "job", **rules}
    found = describe_training_job(new_training_job("1", "r", "id", request, 1_000), evaluations)
    for member, name in names.items():
        assert found[member] == [{**RULE, "RuleConfigurationName": name, "VolumeSizeInGB": 0}]
        (status,) = found[member.replace("Configurations", "EvaluationStatuses")]
        assert status == {
            "RuleConfigurationName": name,
            "RuleEvaluationJobArn": f"arn:aws:sagemaker:r:1:processing-job/job-{name.lower()}-0a1b2c3d",
            "RuleEvaluationStatus": "InProgress",
            "LastModifiedTime": 2.0,
        }
    assert "ProfilerRuleEvaluationStatuses" not in describe()
