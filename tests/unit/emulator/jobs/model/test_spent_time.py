"""Tests of the seconds of a training job by phase."""

from dataclasses import replace
from typing import Any

import pytest

from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.spent_time import list_spent_seconds, parse_moments
from emulator.jobs.model.training_job import SecondaryStatus, SecondaryStatusTransition, TrainingJob


def build_job(*stages: tuple[SecondaryStatus, int]) -> TrainingJob:
    ends = [start_ms for _, start_ms in stages[1:]] + [None]
    transitions = tuple(
        SecondaryStatusTransition(status, start_ms, end_ms, "")
        for (status, start_ms), end_ms in zip(stages, ends, strict=True)
    )
    return TrainingJob("123456789012", "us-east-1", "job", "0f", {}, 1000, stages[-1][1], transitions)


def build_rule(end_ms: int | None) -> RuleEvaluation:
    configuration: dict[str, Any] = {"RuleConfigurationName": "Rule"}
    rule = RuleEvaluation(
        account_id="123456789012",
        region="us-east-1",
        name="rule",
        training_job_name="job",
        position=0,
        configuration=configuration,
        status="NoIssuesFound",
        creation_ms=1000,
        last_modified_ms=1000,
    )
    return replace(rule, end_ms=end_ms)


COMPLETED = build_job(
    ("Starting", 1000), ("Downloading", 1010), ("Training", 1100), ("Uploading", 4000), ("Completed", 4100)
)


def test_each_phase_ends_at_its_recorded_moment() -> None:
    moments = {"inputs": 1060, "script": 1500, "framework": 2500, "step": 3000}
    assert list_spent_seconds(COMPLETED, [build_rule(4250)], moments, 9000) == [
        ("inputs", 0.06),
        ("start", 0.44),
        ("imports", 1.0),
        ("first step", 0.5),
        ("training", 1.0),
        ("uploads", 0.1),
        ("rules' last look", 0.15),
    ]


def test_what_no_moment_was_recorded_of_belongs_to_the_next_phase() -> None:
    assert list_spent_seconds(COMPLETED, [], {}, 9000) == [("inputs", 0.1), ("training", 2.9), ("uploads", 0.1)]


def test_a_rule_that_ended_before_its_job_took_no_last_look() -> None:
    assert list_spent_seconds(COMPLETED, [build_rule(3000)], {}, 9000)[-1] == ("uploads", 0.1)


def test_the_wait_for_a_slot_is_not_counted_as_inputs() -> None:
    job = build_job(
        ("Starting", 1000), ("Pending", 1010), ("Starting", 3010), ("Downloading", 3020), ("Training", 3100)
    )
    assert list_spent_seconds(job, [], {"inputs": 3050}, 3600) == [
        ("waiting for a slot", 2.0),
        ("inputs", 0.05),
        ("start", 0.05),
        ("training", 0.5),
    ]


def test_an_earlier_attempt_has_its_own_line_and_no_moments() -> None:
    job = build_job(
        ("Starting", 1000),
        ("Downloading", 1010),
        ("Training", 1100),
        ("Interrupted", 2000),
        ("Starting", 2500),
        ("Downloading", 2510),
        ("Training", 2600),
    )
    moments = {"inputs": 1060, "script": 1500, "framework": 1600, "step": 1700}
    assert list_spent_seconds(job, [], moments, 3000) == [("earlier attempts", 1.5), ("inputs", 0.1), ("training", 0.4)]


def test_a_stopped_job_has_spent_its_end_with_stopping() -> None:
    job = build_job(
        ("Starting", 1000), ("Downloading", 1010), ("Training", 1100), ("Stopping", 2000), ("Stopped", 2300)
    )
    assert list_spent_seconds(job, [], {}, 9000)[1:] == [("training", 0.9), ("stopping", 0.3)]


def test_a_job_that_failed_before_its_training_has_spent_all_with_its_inputs() -> None:
    job = build_job(("Starting", 1000), ("Downloading", 1010), ("Failed", 1600))
    assert list_spent_seconds(job, [], {}, 9000) == [("inputs", 0.6)]


@pytest.mark.parametrize(
    ("ends", "after"),
    [((), []), ((("Failed", 9000),), []), ((("Stopping", 8000), ("Stopped", 9000)), [("stopping", 1.0)])],
)
def test_a_container_that_builds_its_environment_is_starting(
    ends: tuple[tuple[SecondaryStatus, int], ...], after: list[tuple[str, float]]
) -> None:
    spent = list_spent_seconds(build_job(("Starting", 1000), ("Downloading", 1010), *ends), [], {"inputs": 1350}, 9000)
    assert spent == [("inputs", 0.35), ("start", 7.65 - sum(seconds for _, seconds in after)), *after]


def test_moments_are_the_first_of_a_name_and_the_last_framework_before_the_step() -> None:
    content = b"script 5\nframework 6\nframework 8\nstep 9\nstep 10\nframework 11\nelse 1\nstep x\nstep\n"
    content += b"script 99999999999999999\n"
    assert parse_moments(content) == {"script": 5, "framework": 8, "step": 9}
    assert parse_moments(b"\xff\n") == {}
