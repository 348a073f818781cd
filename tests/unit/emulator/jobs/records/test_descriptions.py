"""What DescribeTrainingJob tells beside the request: AWS's defaults, and what became of the profiler."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.jobs.records.descriptions import describe_training_job
from emulator.jobs.records.training_job import new_training_job

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


def test_profiler_rules_say_that_they_are_not_evaluated() -> None:
    found = describe(ProfilerConfig={}, ProfilerRuleConfigurations=[RULE])
    assert found["ProfilerRuleConfigurations"] == [{**RULE, "VolumeSizeInGB": 0}]
    (status,) = found["ProfilerRuleEvaluationStatuses"]
    assert (status["RuleConfigurationName"], status["RuleEvaluationStatus"]) == ("R", "Stopped")
    assert "not emulated" in status["StatusDetails"]
    assert "ProfilerRuleEvaluationStatuses" not in describe()
