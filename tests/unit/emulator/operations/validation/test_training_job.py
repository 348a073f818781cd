"""Tests of the validation of requests for training jobs."""

from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.operations.validation.training_job import check_training_job


def build(uri: str, kind: str = "S3Prefix", name: str = "train", **members: Any) -> dict[str, Any]:
    source = {"S3DataSource": {"S3DataType": kind, "S3Uri": uri}}
    return {
        "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
        "InputDataConfig": [{"ChannelName": name, "DataSource": source} | members],
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {},
    }


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (build("s3://bkt/x", name=".."), "cannot be a folder"),
        (build("s3://bkt/x", name="a/b"), "cannot be a folder"),
        (build("s3://bkt/x", CompressionType="Gzip"), "CompressionType Gzip.*Pipe"),
        (build("s3://bkt/x", "AugmentedManifestFile"), "AugmentedManifestFile.*Pipe"),
        (build("s3://bkt/x", DataSource={"FileSystemDataSource": {}}), "EFS, FSx.*not emulated"),
    ],
)
def test_an_unsupported_channel_is_refused(request_: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationException, match=said):
        check_training_job(request_)


def test_pipe_mode_accepts_manifests_and_gzip() -> None:
    check_training_job(build("s3://bkt/x", "AugmentedManifestFile", InputMode="Pipe", CompressionType="Gzip"))
