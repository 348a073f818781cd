"""Tests of lists of the newest jobs: filters, order, totals."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import new_training_job
from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.store.newest import JobFilter
from emulator.jobs.store.store import JobStore

ACCOUNT = "123456789012"
JOBS = 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    """Thirty training jobs of two regions, of which every fifth failed and every third has a rule that fired."""
    opened = JobStore(tmp_path / "jobs.sqlite")
    with opened.transaction() as transaction:
        for number in range(JOBS):
            region = "eu-west-1" if number % 2 else "us-east-1"
            name, born_ms = f"job-{number}", 1_000 + number
            image = "repository/tensorflow:2" if number % 10 == 0 else "repository/pytorch:1"
            request = {"TrainingJobName": name, "AlgorithmSpecification": {"TrainingImage": image}}
            job = new_training_job(ACCOUNT, region, f"{number:012x}", request, born_ms)
            if number % 5 == 0:
                job = job.transition("Failed", born_ms + 1, failure_reason="no disk")
            rules = [build_rule(region, name, number, "IssuesFound")] if number % 3 == 0 else []
            transaction.create_training_job(job, rules, ())
        for number, region in enumerate(("us-east-1", "eu-west-1")):
            made: dict[str, Any] = {
                "region": region,
                "account_id": ACCOUNT,
                "creation_ms": number * 2000,
                "last_modified_ms": 1,
            }
            processing = {"AppSpecification": {"ImageUri": "repository/sklearn:1"}}
            tuning = {"HyperParameterTuningJobConfig": {"Strategy": "Bayesian"}}
            steps = {"Train": {"arn": f"arn:job-{number}", "type": "Training", "status": "Executing"}}
            started = {"PipelineName": "nightly", "PipelineDefinition": "{}", "PipelineExecutionDisplayName": "Try"}
            transaction.create_job(
                ProcessingJob(name=f"clean-{number}", id=f"p{number}", request=processing, **made),
                (),
            )
            transaction.create_job(TuningJob(name=f"tune-{number}", id=f"t{number}", request=tuning, **made), ())
            execution = PipelineExecution(name=f"id-{number}", id=f"e{number}", request=started, steps=steps, **made)
            transaction.create_job(execution, ())
    yield opened
    opened.close()


def build_rule(region: str, job: str, number: int, status: Any) -> RuleEvaluation:
    return RuleEvaluation(
        account_id=ACCOUNT,
        region=region,
        name=f"{job}-rule",
        training_job_name=job,
        position=0,
        configuration={"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": "repository/rules:1"},
        creation_ms=1_000 + number,
        last_modified_ms=1_000 + number,
        status=status,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (JobFilter(limit=3), [29, 28, 27]),
        (JobFilter(limit=3, offset=28), [1, 0]),
        (JobFilter(limit=3, offset=99), []),
        (JobFilter(status="Failed"), [25, 20, 15, 10, 5, 0]),
        (JobFilter(region="eu-west-1", status="Failed"), [25, 15, 5]),
        (JobFilter(image="tensorflow"), [20, 10, 0]),
        (JobFilter(rule_status="IssuesFound", status="Failed"), [15, 0]),
        (JobFilter(rule_status="Error"), []),
        (JobFilter(words=("lossnot", "issues", "failed")), [15, 0]),
        (JobFilter(words=("job-1 us",)), []),
        (JobFilter(name_contains="ob-2"), [29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 2]),
        (JobFilter(name_contains="JOB"), []),
        (JobFilter(words=("%",)), []),
    ],
)
def test_training_jobs_are_chosen_and_ordered(store: JobStore, wanted: JobFilter, numbers: list[int]) -> None:
    listed, _ = store.newest.list_training_jobs(wanted)
    assert [job.name for job, _ in listed] == [f"job-{number}" for number in numbers]
    assert all([rule.training_job_name for rule in rules] == [job.name] for job, rules in listed if rules)
    assert all(bool(rules) == (int(job.name[4:]) % 3 == 0) for job, rules in listed)


def test_the_total_counts_what_a_page_leaves_out(store: JobStore) -> None:
    assert store.newest.list_training_jobs(JobFilter(limit=2))[1] == JOBS
    assert store.newest.list_training_jobs(JobFilter(limit=2, offset=99, status="Failed"))[1] == 6
    assert store.newest.list_processing_jobs(JobFilter(limit=2))[1] == 12


def test_processing_jobs_are_listed_with_rule_evaluations(store: JobStore) -> None:
    listed, total = store.newest.list_processing_jobs(JobFilter(limit=3))
    assert ([job.name for job in listed], total) == (["clean-1", "job-27-rule", "job-24-rule"], 12)
    only, total = store.newest.list_processing_jobs(JobFilter(image="sklearn", status="InProgress"))
    assert ([job.name for job in only], total) == (["clean-1", "clean-0"], 2)
    assert store.newest.list_processing_jobs(JobFilter(words=("job-27", "completed")))[1] == 1


def test_tuning_jobs_and_executions_are_found_by_what_is_shown(store: JobStore) -> None:
    for word in ("bayesian", "tune"):
        jobs, total = store.newest.list_tuning_jobs(JobFilter(words=(word,)))
        assert ([job.name for job in jobs], total) == (["tune-1", "tune-0"], 2)
    for word in ("nightly", "try", "id-1"):
        assert store.newest.list_pipeline_executions(JobFilter(words=(word,)))[0][0].name == "id-1"
    assert store.newest.list_pipeline_executions(JobFilter(region="nowhere")) == ([], 0)


def test_the_execution_of_which_a_job_is_a_step_is_found(store: JobStore) -> None:
    found = store.newest.find_pipeline_execution_of("arn:job-1")
    assert found is not None
    assert found.name == "id-1"
    assert store.newest.find_pipeline_execution_of("arn:job") is None
