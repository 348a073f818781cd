"""Tests of custom rules over a profile: input, waits and end."""

import threading
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import NoMoreProfilerData
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import create_trial
from tests.unit.smdebug.profiler.profile_maker import ProfileMaker
from tests.unit.smdebug.profiler.profiled_job import START_US, write_profiled_job
from tests.waiting import wait_until

SECOND = 1_000_000


class BusyGpu(Rule):
    """Looks at five seconds at a time, and counts values above 80 %."""

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        self.at = base_trial.first_timestamp
        self.busy: list[int] = []

    def invoke_at_step(self, step: int) -> bool:
        trial: Any = self.base_trial
        trial.wait_for_data(self.at + 5 * SECOND, self.at)
        found = trial.get_system_metrics(self.at, self.at + 5 * SECOND - 1)
        self.at += 5 * SECOND
        self.busy.append(sum(each.value > 80 for each in found if each.type == "gpu"))
        return False


def test_a_rule_goes_through_a_profile_to_its_end(tmp_path: Path) -> None:
    maker = write_profiled_job(tmp_path / "job")
    maker.end()
    output = tmp_path / "output"
    trial = create_trial(str(tmp_path / "job"), profiler=True, output_dir=str(output))
    assert (output / ".sagemaker-ignore").is_dir()
    assert trial.temp_dir == str(output / ".sagemaker-ignore")
    assert (trial.name, trial.path, trial.first_timestamp) == ("job", str(tmp_path / "job"), START_US)
    assert trial.job_finished()
    assert len(trial.get_framework_metrics(START_US, START_US + 2 * SECOND)) == 2
    rule = BusyGpu(trial)
    invoke_rule(rule)
    assert rule.busy == [10, 10, 4]


def test_data_are_waited_for(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path / "job")
    made: list[Any] = []

    def follow() -> None:
        trial = create_trial(
            str(maker.folder), profiler=True, output_dir=str(tmp_path / "output"), poll_interval_s=0.01
        )
        made.append(trial)
        trial.wait_for_data(START_US + 70 * SECOND, START_US)
        made.append("data")

    thread = threading.Thread(target=follow)
    thread.start()
    maker.add_sample(1.0, memory=3.0)
    wait_until(lambda: made)
    assert made[1:] == []
    maker.add_sample(121.0, memory=3.0)
    wait_until(lambda: made[1:])
    thread.join()


def test_a_job_that_has_ended_without_anything(tmp_path: Path) -> None:
    maker = ProfileMaker(tmp_path / "job")
    maker.end()
    with pytest.raises(NoMoreProfilerData):
        create_trial(str(maker.folder), profiler=True, output_dir=str(tmp_path / "output"))
