from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin.stalled_training_rule import StalledTrainingRule
from tests.unit.smdebug.rules.builtin.judging import get_finding, write_run


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class SageMaker:
    """The two calls of boto3's client that stopping makes."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.asked: dict[str, str] = {}
        self.stopped: list[str] = []

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_training_jobs"
        return self

    def paginate(self, **filters: Any) -> list[dict[str, Any]]:
        self.asked = filters
        return [{"TrainingJobSummaries": [{"TrainingJobName": name} for name in self.names]}]

    def stop_training_job(self, TrainingJobName: str) -> None:  # noqa: N803 -- boto3's name
        self.stopped.append(TrainingJobName)


@pytest.fixture
def make_rule(tmp_path: Path) -> Any:
    def make(**parameters: str) -> StalledTrainingRule:
        rule = StalledTrainingRule(write_run(tmp_path, [{"loss": 1.0}] * 3), **parameters)
        rule.clock = Clock()
        rule.invoke_at_step(0)
        return rule

    return make


def wait(rule: StalledTrainingRule, seconds: float) -> None:
    assert isinstance(rule.clock, Clock)
    rule.clock.now += seconds


@pytest.mark.parametrize(("idle", "fires"), [(1800.0, False), (1800.1, True)])
def test_idle(make_rule: Any, idle: float, fires: bool) -> None:
    rule = make_rule()
    assert rule.check_idle(idle) is fires
    wait(rule, idle)
    assert rule.check_idle() is fires
    assert rule.invoke_at_step(1) is fires
    assert rule.invoke_at_step(2) is False
    if fires:
        assert get_finding(rule).step == 1
        assert "longer than threshold 1800 s" in str(get_finding(rule))


def test_threshold(make_rule: Any) -> None:
    assert make_rule(threshold="5").check_idle(5.1)
    with pytest.raises(SMDebugValueError, match="threshold is 'soon', expected a number of at least 0"):
        make_rule(threshold="soon")
    with pytest.raises(SMDebugValueError, match="stop_training_on_fire needs training_job_name_prefix"):
        make_rule(stop_training_on_fire="True")


def test_it_fires_although_no_job_can_be_stopped(make_rule: Any) -> None:
    class Refuses:
        def get_paginator(self, _: str) -> None:
            raise ConnectionError("nobody answers")

    rule = make_rule(stop_training_on_fire="True", training_job_name_prefix="my-job")
    rule.sagemaker = Refuses()
    assert rule.check_idle(1801) is True
    assert str(get_finding(rule)).endswith("no job was stopped: nobody answers")


@pytest.mark.parametrize(
    ("names", "stopped"),
    [(["my-job-1", "other-my-job-2"], ["my-job-1"]), (["my-job-1", "my-job-2"], []), ([], [])],
)
def test_stops_the_only_job_of_the_prefix(make_rule: Any, names: list[str], stopped: list[str]) -> None:
    rule = make_rule(stop_training_on_fire="True", training_job_name_prefix="my-job")
    rule.sagemaker = SageMaker(names)
    assert rule.check_idle(1) is False
    assert rule.sagemaker.asked == {}
    assert rule.check_idle(1801) is True
    assert rule.sagemaker.asked == {"NameContains": "my-job", "StatusEquals": "InProgress", "MaxResults": 100}
    assert rule.sagemaker.stopped == stopped
    assert ("told to stop" if stopped else "no job was stopped") in str(get_finding(rule))
