"""Tests of recovery: remains of jobs that had ended before a kill.

No emulator is killed here: after one has ended, its folders and stored states are made as a kill leaves them.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.staging.opt_ml import find_work_folder
from emulator.jobs.staging.s3_paths import build_tensors_uri
from emulator.moto_services.s3.objects import parse_s3_uri
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness, open_job_harness
from tests.integration.emulator.jobs.runs.test_processing import build_request, run


def run_with_rule(tmp_path: Path, script: str = "") -> str:
    """Run a training job with one rule to its end, in an emulator that ends; return the bucket."""
    with open_job_harness(tmp_path) as harness:
        request = harness.request(script=script, DebugHookConfig=harness.hook())
        harness.run(request | {"DebugRuleConfigurations": [harness.rule("R", "pass")]})
        return harness.bucket


def read_stored(harness: JobHarness) -> tuple[TrainingJob, RuleEvaluation]:
    job = harness.store.find_training_job(REGION, "job")
    assert job is not None
    (rule,) = harness.store.list_rule_evaluations_of(job)
    return job, rule


def leave_file(harness: JobHarness, name: str, job_id: str, file: str) -> Path:
    """Write a file into the folder of a job, which had been removed; return the folder."""
    folder = find_work_folder(harness.settings, name, job_id)
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_text("left")
    return folder


def test_what_an_ended_rule_wrote_is_uploaded(tmp_path: Path) -> None:
    bucket = run_with_rule(tmp_path)
    with open_job_harness(tmp_path, bucket=bucket) as harness:
        job, rule = read_stored(harness)
        folder = leave_file(harness, rule.name, job.id, "ml/processing/output/rule/late.txt")
        harness.jobs.recover()
        assert harness.s3.get(bucket, "out/job/rule-output/R/late.txt") == b"left"
        assert not folder.exists()


def test_the_folder_of_an_ended_processing_job_goes(tmp_path: Path) -> None:
    with open_job_harness(tmp_path) as harness:
        run(harness, build_request(harness, ""))
        bucket = harness.bucket
    with open_job_harness(tmp_path, bucket=bucket) as harness:
        job = harness.jobs.processing.get(REGION, "work")
        assert isinstance(job, ProcessingJob)
        folder = leave_file(harness, "work", job.id, "processing/file")
        harness.jobs.recover()
        assert not folder.exists()


@pytest.mark.parametrize(
    ("script", "is_whole", "seconds", "details"),
    [
        ("", True, 1, "The rule still ran 1 s (MaxRuntimeInSeconds) after the training job had ended."),
        ("sys.exit(1)", True, 1, "The rule still ran 1 s (MaxRuntimeInSeconds) after the training job had ended."),
        ("", False, 600, "The training job ended before every step was evaluated."),
    ],
)
def test_a_rule_that_begins_again_after_its_job_has_limited_time(
    tmp_path: Path, script: str, is_whole: bool, seconds: int, details: str
) -> None:
    bucket = run_with_rule(tmp_path, script)
    with open_job_harness(tmp_path, bucket=bucket) as harness:
        job, rule = read_stored(harness)
        if not is_whole:
            harness.s3.delete(bucket, f"{parse_s3_uri(build_tensors_uri(job)).key}/training_job_end.ts")
        with harness.store.transaction() as transaction:
            condition = {"StoppingCondition": {"MaxRuntimeInSeconds": seconds}}
            transaction.save_job(replace(job, request={**job.request, **condition}))
            waits = {**rule.configuration, "RuleParameters": {"behaviour": "wait"}}
            transaction.save_job(replace(rule, configuration=waits, status="InProgress", end_ms=None))
        harness.jobs.recover()
        (judged,) = harness.wait()["DebugRuleEvaluationStatuses"]
        assert (judged["RuleEvaluationStatus"], judged["StatusDetails"]) == ("Stopped", details)
