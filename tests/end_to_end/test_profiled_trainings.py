"""Tests of profiled trainings by the SDK: five faulty ones and a healthy one.

They run at once in one emulator.
"""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from sdk_compat.environment import prepare_environment
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.running_emulator import RunningEmulator

# Six trainings and ten rules at once are many for a machine that does other things.
pytestmark = [pytest.mark.nightly, pytest.mark.any_back_end, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "profiler" / "estimator.py"
BUCKET = "profiled"
# What the verdict says of each mistake.
FOUND = {
    "slow_data": ("SlowDataLoading", "of the time, more than threshold 50 %"),
    "tiny_batches": ("SmallBatches", "an undisturbed step of 300 lasts "),
    "growing_memory": ("MemoryGrowth", "percentage points, more than increase 6"),
    "slow_steps": (
        "StepOutlier",
        "of 95 steps (TRAIN) last more than 20 deviations longer than the median",
    ),
    "long_start": ("MaxInitializationTime", "minutes after the first metric, more than threshold"),
}


@pytest.fixture(scope="module")
def names(emulator: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The names of the six jobs by their mistake; they run."""
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    folder = tmp_path_factory.mktemp("sdk")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(emulator.endpoint_url, environment, folder=folder)
    prefix = f"profiled-{uuid.uuid4().hex[:6]}"
    command = [sys.executable, "-W", "ignore", str(EXAMPLE), BUCKET, prefix]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + emulator.log_text()
    names = dict(line.split() for line in done.stdout.splitlines() if prefix in line and len(line.split()) == 2)
    assert names.keys() == {*FOUND, "none"}, done.stdout
    return names


@pytest.mark.parametrize("mistake", FOUND)
def test_a_mistake_is_found_by_its_rule(emulator: RunningEmulator, names: dict[str, str], mistake: str) -> None:
    job = wait_until_ended(emulator, names[mistake], seconds=800)
    assert job["TrainingJobStatus"] == "Completed", read_log(emulator, job["TrainingJobName"])
    rule, text = FOUND[mistake]
    (status,) = job["ProfilerRuleEvaluationStatuses"]
    found = (status["RuleConfigurationName"], status["RuleEvaluationStatus"])
    assert found == (rule, "IssuesFound"), (status, read_log(emulator, job["TrainingJobName"]))
    assert f"Rule {rule} fired " in status["StatusDetails"]
    assert text in status["StatusDetails"]


def test_a_healthy_training_is_found_by_none(emulator: RunningEmulator, names: dict[str, str]) -> None:
    job = wait_until_ended(emulator, names["none"], seconds=800)
    assert job["TrainingJobStatus"] == "Completed", read_log(emulator, job["TrainingJobName"])
    statuses = {each["RuleConfigurationName"]: each for each in job["ProfilerRuleEvaluationStatuses"]}
    assert statuses.keys() == {rule for rule, _ in FOUND.values()}
    for rule, status in statuses.items():
        assert status["RuleEvaluationStatus"] == "NoIssuesFound", (status, read_log(emulator, names["none"]))
        # It looked, and did not say that there was too little to judge.
        assert status["StatusDetails"].startswith(f"Rule {rule} found no issue in "), status
        assert "Nothing was judged" not in status["StatusDetails"], status
