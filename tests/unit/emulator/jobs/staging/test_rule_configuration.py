"""Tests of a rule's configuration and of the folder of its files."""

from pathlib import Path
from typing import Any

import pytest

from container_runtime.spec import Mount
from emulator.jobs.model.failures import RequestFailure
from emulator.jobs.model.rule_evaluation import RuleEvaluation, new_rule_evaluation
from emulator.jobs.model.training_job import new_training_job
from emulator.jobs.staging.rule_configuration import (
    DEFAULT_LOCAL_PATH,
    build_rule_configuration,
    check_local_path,
    describe_limits,
    is_below,
    locate_output,
)


def build_evaluation(**members: Any) -> RuleEvaluation:
    configuration = {"RuleConfigurationName": "R", "RuleEvaluatorImage": "i", **members}
    return new_rule_evaluation("123456789012", "us-east-1", "job", 0, configuration, "0123abcd", 0)


@pytest.mark.parametrize("of_profiler", [False, True])
def test_a_rule_gets_the_name_of_its_job_and_its_output_folder(of_profiler: bool) -> None:
    kind = "ProfilerRuleConfigurations" if of_profiler else "DebugRuleConfigurations"
    request = {
        "OutputDataConfig": {"S3OutputPath": "s3://b/out"},
        "ProfilerConfig": {"S3OutputPath": "s3://b/profiler"},
        kind: [{"RuleConfigurationName": "R", "RuleEvaluatorImage": "i"}],
    }
    job = new_training_job("123456789012", "us-east-1", "0123abcd", {"TrainingJobName": "job", **request}, 0)
    evaluation = build_evaluation(RuleParameters={"threshold": "3"})
    others = {"other": "s3://b/other"}
    told = build_rule_configuration(evaluation, job, others, output_path="/out", verdict_path="/verdict.json")
    assert told.pop("ProfilerS3Uri", None) == (f"s3://b/profiler/{job.name}/profiler-output" if of_profiler else None)
    assert told == {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "ProcessingJobName": evaluation.name,
        "RuleConfigurationName": "R",
        "RuleParameters": {"threshold": "3"},
        "TensorsS3Uri": f"s3://b/out/{job.name}/debug-output",
        "TensorsS3UriOfJobs": others,
        "OutputPath": "/out",
        "VerdictPath": "/verdict.json",
    }


@pytest.mark.parametrize("path", [None, "", "/opt/ml/mine", "/data", "/opt/ml/processing", "/usr/local"])
def test_a_folder_that_nothing_needs_is_taken(path: str | None) -> None:
    check_local_path(build_evaluation(LocalPath=path))


@pytest.mark.parametrize("path", ["mine", "/", "/opt", "/opt/ml", "/opt/ml/config", "/usr", "/etc", "/a/../etc"])
def test_a_folder_that_the_container_needs_is_refused(path: str) -> None:
    with pytest.raises(RequestFailure, match=f"The LocalPath of the rule R is '{path}': give an absolute path"):
        check_local_path(build_evaluation(LocalPath=path))


@pytest.mark.parametrize(
    ("path", "source", "target"),
    [
        (None, "ml/processing/output/rule", DEFAULT_LOCAL_PATH),
        ("/opt/ml/mine/", "ml/mine", "/opt/ml/mine"),
        ("/data", "elsewhere", "/data"),
        ("/opt/ml/../data", "elsewhere", "/opt/ml/../data"),
        ("relative", "ml/processing/output/rule", DEFAULT_LOCAL_PATH),
    ],
)
def test_files_of_a_rule_are_in_its_opt_ml_or_beside_it(
    tmp_path: Path, path: str | None, source: str, target: str
) -> None:
    opt_ml = Mount(tmp_path / "ml", "/opt/ml")
    output = locate_output(opt_ml, tmp_path / "elsewhere", build_evaluation(LocalPath=path))
    assert (output.source, output.target) == (tmp_path / source, target)
    assert is_below(opt_ml, output) is (source != "elsewhere")


def test_an_instance_of_unknown_size_is_reported() -> None:
    assert list(describe_limits({"InstanceType": "ml.m5.large"})) == []
    assert list(describe_limits({})) == []
    (told,) = describe_limits({"InstanceType": "ml.none.such"})
    assert told.startswith("How much memory ml.none.such has is not known here")
