from typing import Any

import pytest

from emulator.jobs.model.rule_evaluation import TRANSITIONS as RULE_TRANSITIONS
from emulator.jobs.model.rule_evaluation import build_processing_job_name, new_rule_evaluation
from emulator.jobs.model.training_job import (
    ENDED_STATUSES,
    STATUS_MESSAGES,
    STATUS_OF_SECONDARY,
    TRANSITIONS,
    TrainingJob,
    UndeclaredTransitionError,
    new_training_job,
)


def make_job(**members: Any) -> TrainingJob:
    request = {"TrainingJobName": "job", "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}} | members
    return new_training_job("123456789012", "us-east-1", "abc", request, 1_000)


def test_job_goes_through_its_stages_and_keeps_each_with_its_times() -> None:
    job = make_job(InputDataConfig=[{"ChannelName": "x"}])
    for now, stage in ((2_000, "Downloading"), (3_500, "Training"), (9_000, "Uploading"), (9_100, "Completed")):
        job = job.transition(stage, now)  # type: ignore[arg-type]
    assert [(each.status, each.start_ms, each.end_ms) for each in job.transitions] == [
        ("Starting", 1_000, 2_000),
        ("Downloading", 2_000, 3_500),
        ("Training", 3_500, 9_000),
        ("Uploading", 9_000, 9_100),
        ("Completed", 9_100, 9_100),
    ]
    assert [each.message for each in job.transitions] == [
        "Preparing the instances for training",
        "Downloading input data",
        "Training image download completed. Training in progress.",
        "Uploading generated training model",
        "Training job completed",
    ]
    assert (job.status, job.training_start_ms, job.training_end_ms, job.training_seconds) == (
        "Completed",
        2_000,
        9_100,
        8,
    )


def test_undeclared_move_is_refused() -> None:
    with pytest.raises(UndeclaredTransitionError, match="'job' cannot go from Starting to Uploading"):
        make_job().transition("Uploading", 2_000)


def test_every_status_is_declared_and_what_has_ended_stays() -> None:
    assert set(TRANSITIONS) - {None} == set(STATUS_MESSAGES) == set(STATUS_OF_SECONDARY)
    for secondary, status in STATUS_OF_SECONDARY.items():
        assert (not TRANSITIONS[secondary]) == (status in ENDED_STATUSES)


def test_stop_before_anything_was_billed_has_no_training_time() -> None:
    job = make_job().transition("Stopping", 1_500, stop_cause="StopTrainingJob").transition("Stopped", 1_600)
    assert job.training_end_ms is None
    assert job.training_seconds is None


def test_stop_begins_once_and_ends_with_the_name_of_its_cause() -> None:
    job = make_job()
    stopping = job.begin_stop(2_000, "MaxRuntimeExceeded")
    assert (stopping.status, stopping.stop_cause) == ("Stopping", "MaxRuntimeExceeded")
    assert stopping.begin_stop(2_500) is stopping, "who asks later changes no cause"
    ended = stopping.end_stop(3_000)
    assert (ended.status, ended.secondary_status) == ("Stopped", "MaxRuntimeExceeded")
    assert ended.begin_stop(4_000) is ended.fail(4_000, "too late") is ended
    assert job.begin_stop(2_000).end_stop(3_000).secondary_status == "Stopped"


def test_failure_reason_is_cut_to_what_the_model_allows() -> None:
    job = make_job().transition("Failed", 2_000, failure_reason="x" * 5_000)
    assert job.failure_reason == "x" * 1024


def test_processing_job_name_keeps_aws_form_for_any_rule_name() -> None:
    assert (
        build_processing_job_name("a" * 40, "VanishingGradient", "0123abcd") == f"{'a' * 26}-VanishingGradient-0123abcd"
    )
    assert build_processing_job_name("job", "My rule: ../x/", "0123abcd") == "job-My-rule-x--0123abcd"
    assert build_processing_job_name("job", "日本", "0123abcd") == "job---0123abcd"


def test_rule_goes_from_stopping_to_a_verdict_but_never_back() -> None:
    rule = new_rule_evaluation("1", "r", "job", 0, {"RuleConfigurationName": "R"}, "0123abcd", 1_000)
    assert rule.arn == "arn:aws:sagemaker:r:1:processing-job/job-r-0123abcd"
    stopping = rule.transition("Stopping", 2_000)
    fired = stopping.transition("IssuesFound", 3_000, status_details="why")
    assert (fired.processing_job_status, fired.status_details, fired.end_ms) == ("Completed", "why", 3_000)
    assert stopping.end_ms is None
    with pytest.raises(UndeclaredTransitionError):
        fired.transition("Stopped", 4_000)
    assert {status for status, moves in RULE_TRANSITIONS.items() if moves} == {"InProgress", "Stopping"}


def test_rule_that_has_ended_neither_stops_nor_ends_again() -> None:
    rule = new_rule_evaluation("1", "r", "job", 0, {"RuleConfigurationName": "R"}, "0123abcd", 1_000)
    stopping = rule.begin_stop(2_000)
    assert stopping.begin_stop(2_500) is stopping
    ended = stopping.end("IssuesFound", 3_000, "why")
    assert (ended.status, ended.status_details) == ("IssuesFound", "why")
    assert ended.begin_stop(4_000) is ended.end_unstarted(4_000) is ended
    unstarted = rule.end_unstarted(2_000)
    assert (unstarted.status, unstarted.status_details) == (
        "Stopped",
        "The evaluation ended before its container started.",
    )


def test_a_job_that_was_lost_may_train_as_long_as_at_first() -> None:
    job = make_job(StoppingCondition={"MaxRuntimeInSeconds": 100}).transition("Pending", 1_000)
    job = job.transition("Starting", 2_000).transition("Downloading", 2_000).transition("Training", 3_000)
    assert job.find_runtime_seconds(13_000) == 90
    job = job.restart(900_000).transition("Starting", 900_000).transition("Downloading", 900_000)
    assert job.transition("Training", 901_000).find_runtime_seconds(921_000) == 80


def test_a_restart_says_what_was_lost_and_costs_no_retry() -> None:
    job = make_job(RetryStrategy={"MaximumRetryAttempts": 1}).transition("Pending", 1_500)
    for cause in ("", "The node n1 of the Swarm does not answer."):
        job = job.transition("Starting", 2_000).transition("Downloading", 2_000).restart(4_000, cause)
    lost = [each.message for each in job.transitions if each.status == "Restarting"]
    assert lost == [
        "Restarting the training job: what it ran in was lost with the emulator or the engine",
        "Restarting the training job: The node n1 of the Swarm does not answer.",
    ]
    assert job.retries_left == 1
    for _ in range(8):
        job = job.transition("Starting", 5_000).transition("Downloading", 5_000).restart(7_000, "It is gone.")
    assert not job.may_restart
