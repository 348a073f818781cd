"""Tests of S3 locations of a job, and of local paths of keys."""

from pathlib import Path
from typing import Any

import pytest

from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.model.training_job import TrainingJob, new_training_job
from emulator.jobs.staging.s3_paths import (
    build_output_uri,
    build_profiler_uri,
    build_rule_output_uri,
    build_tensorboard_uri,
    build_tensors_uri,
    parse_request_uri,
    require_bucket,
    require_source_bundle,
    resolve_relative_key,
)
from emulator.moto_services.s3.objects import ObjectStore, S3Uri


def build_job(**members: Any) -> TrainingJob:
    request = {"OutputDataConfig": {"S3OutputPath": "s3://b/out/"}, **members}
    return new_training_job("123456789012", "us-east-1", "0123abcd", {"TrainingJobName": "job", **request}, 0)


def test_results_are_below_the_jobs_name() -> None:
    job = build_job(
        DebugHookConfig={"S3OutputPath": "s3://b/hook"},
        TensorBoardOutputConfig={"S3OutputPath": "s3://b/board"},
        ProfilerConfig={"S3OutputPath": "s3://b/profiler"},
    )
    assert build_output_uri(job).startswith("s3://b/out/")
    assert build_output_uri(job) == f"s3://b/out/{job.name}/output"
    assert build_tensors_uri(job) == f"s3://b/hook/{job.name}/debug-output"
    assert build_tensors_uri(build_job()) == f"s3://b/out/{job.name}/debug-output"
    assert build_tensorboard_uri(job) == f"s3://b/board/{job.name}/tensorboard-output"
    assert build_profiler_uri(job) == f"s3://b/profiler/{job.name}/profiler-output"


@pytest.mark.parametrize(("path", "base"), [(None, "s3://b/out"), ("s3://b/rules/", "s3://b/rules")])
def test_output_of_a_rule_is_below_its_own_place_or_the_jobs(path: str | None, base: str) -> None:
    configuration = {"RuleConfigurationName": "R", "RuleEvaluatorImage": "i", "S3OutputPath": path}
    evaluation = new_rule_evaluation("123456789012", "us-east-1", "job", 0, configuration, "0123abcd", 0)
    job = build_job()
    assert build_rule_output_uri(job, evaluation) == f"{base}/{job.name}/rule-output/R"


def test_what_is_no_uri_is_refused_by_the_members_name() -> None:
    assert parse_request_uri("s3://bucket/a/k", "S3Uri") == S3Uri("bucket", "a/k")
    with pytest.raises(RequestFailure, match=r"^OutputDataConfig: .*http://b/k"):
        parse_request_uri("http://b/k", "OutputDataConfig")


def test_a_bucket_that_is_missing_is_refused_by_its_name(s3: ObjectStore, bucket: str) -> None:
    assert require_bucket(s3, f"s3://{bucket}/a/", "S3Uri") == S3Uri(bucket, "a/")
    with pytest.raises(RequestFailure, match="S3Uri is s3://no-such-one/a, but the bucket 'no-such-one' does not"):
        require_bucket(s3, "s3://no-such-one/a", "S3Uri")


@pytest.mark.parametrize("uri", ["{}/a/source.tar.gz", '"{}/a/source.tar.gz"', "{}/a/", "/opt/ml/code", ""])
def test_a_source_bundle_that_is_there_is_taken(s3: ObjectStore, bucket: str, uri: str) -> None:
    s3.put(bucket, "a/source.tar.gz", b"x")
    require_source_bundle(s3, {"HyperParameters": {"sagemaker_submit_directory": uri.format(f"s3://{bucket}")}})
    require_source_bundle(s3, {})


@pytest.mark.parametrize("key", ["a/source.tar", "a/source.tar.gz2", "b/"])
def test_a_source_bundle_that_is_missing_is_refused(s3: ObjectStore, bucket: str, key: str) -> None:
    s3.put(bucket, "a/source.tar.gz", b"x")
    uri = f"s3://{bucket}/{key}"
    with pytest.raises(RequestFailure, match=f"sagemaker_submit_directory is {uri}, but there is no such object"):
        require_source_bundle(s3, {"HyperParameters": {"sagemaker_submit_directory": uri}})


@pytest.mark.parametrize("relative", ["a", "a/b c/ü", "...", "x" * 255, "é" * 127])
def test_a_key_becomes_a_path(tmp_path: Path, relative: str) -> None:
    assert resolve_relative_key(tmp_path, relative) == tmp_path / relative


@pytest.mark.parametrize(
    "relative", ["", "/a", "a/", "a//b", ".", "a/./b", "../a", "a/..", "a\0", "x" * 256, "é" * 128]
)
def test_a_key_that_cannot_be_a_file_is_refused(tmp_path: Path, relative: str) -> None:
    with pytest.raises(RequestFailure, match=r"cannot become a file: its part .* is not a file name"):
        resolve_relative_key(tmp_path, relative)
