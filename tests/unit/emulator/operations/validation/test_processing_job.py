"""Tests of CreateProcessingJob's checks beyond the service model."""

from typing import Any

import pytest

from emulator.exceptions import AwsError, ResourceLimitExceeded
from emulator.operations.validation.processing_job import check_processing_job


def build_request(**members: Any) -> dict[str, Any]:
    cluster = {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
    return {"ProcessingJobName": "job", "ProcessingResources": {"ClusterConfig": cluster}} | members


def build_input(local_path: str | None = "/opt/ml/processing/in", name: str = "in", **source: str) -> dict[str, Any]:
    where = {"S3Uri": "s3://bucket/in", "S3DataType": "S3Prefix"} | ({"LocalPath": local_path} if local_path else {})
    return {"InputName": name, "S3Input": {**where, **source}}


def build_output(local_path: str | None, **members: Any) -> dict[str, Any]:
    where = {"S3Uri": "s3://bucket/out", "S3UploadMode": "EndOfJob"} | ({"LocalPath": local_path} if local_path else {})
    return {"Outputs": [{"OutputName": "out", "S3Output": where} | members]}


def test_what_is_accepted() -> None:
    check_processing_job(build_request())
    check_processing_job(
        build_request(
            ProcessingInputs=[build_input(), {**build_input(None, "own"), "AppManaged": True}],
            ProcessingOutputConfig=build_output("/opt/ml/processing/../model"),
        )
    )
    feature_store = {"OutputName": "fs", "FeatureStoreOutput": {"FeatureGroupName": "g"}, "AppManaged": True}
    check_processing_job(build_request(ProcessingOutputConfig={"Outputs": [feature_store]}))


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"ProcessingInputs": [build_input(None)]}, "The input 'in' has no LocalPath"),
        ({"ProcessingInputs": [build_input("/opt/ml/input")]}, "it must begin with /opt/ml/processing/"),
        ({"ProcessingInputs": [build_input("/opt/ml/processing/../x")]}, "it must begin with /opt/ml/processing/"),
        ({"ProcessingInputs": [build_input(), build_input()]}, "InputName must be unique. Used more than once: in."),
        ({"ProcessingInputs": [{"InputName": "in"}]}, "exactly one of S3Input and DatasetDefinition"),
        (
            {"ProcessingInputs": [{"InputName": "in", "DatasetDefinition": {}}]},
            "the emulator has neither Athena nor Redshift",
        ),
        ({"ProcessingInputs": [build_input(S3InputMode="Pipe")]}, "S3InputMode Pipe, which is not emulated"),
        ({"ProcessingInputs": [build_input(S3CompressionType="Gzip")]}, "only supported with S3InputMode Pipe"),
        ({"ProcessingOutputConfig": build_output(None)}, "The output 'out' has no LocalPath"),
        ({"ProcessingOutputConfig": build_output("relative")}, "it must be a folder below /opt/ml/"),
        ({"ProcessingOutputConfig": build_output("/opt/ml/output/x")}, "that is not the service's own"),
        ({"ProcessingOutputConfig": build_output("/data")}, "it must be a folder below /opt/ml/"),
        (
            {"ProcessingOutputConfig": {"Outputs": [{"OutputName": "fs", "FeatureStoreOutput": {}}]}},
            "AppManaged must be true for it",
        ),
        ({"ProcessingResources": {"ClusterConfig": {}}}, "ClusterConfig must have InstanceType and InstanceCount"),
    ],
)
def test_what_is_refused(members: dict[str, Any], text: str) -> None:
    with pytest.raises(AwsError, match=text) as caught:
        check_processing_job(build_request(**members))
    assert caught.value.code == "ValidationException"


def test_limits() -> None:
    cluster = {"InstanceCount": 17, "InstanceType": "ml.m5.large"}
    with pytest.raises(ResourceLimitExceeded, match="at most 16 instances"):
        check_processing_job(build_request(ProcessingResources={"ClusterConfig": cluster}))
    with pytest.raises(ResourceLimitExceeded, match="432000 Seconds"):
        check_processing_job(build_request(StoppingCondition={"MaxRuntimeInSeconds": 432001}))
