"""Tests of the job concurrency limit: further jobs wait as Pending.

They run one after the other.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from emulator.jobs.runs import admission
from emulator.jobs.runs.recovery import find_left_over
from tests.integration.emulator.jobs.job_harness import REGION, open_job_harness
from tests.integration.emulator.jobs.runs.killed_harness import WAIT_FOR_GO, let_go, recover, run_and_kill


@pytest.mark.slow
def test_jobs_wait_for_a_place_in_their_order(tmp_path: Path) -> None:
    with open_job_harness(tmp_path, max_jobs=1) as harness:
        names = ["one", "two", "three"]
        harness.jobs.training.create(REGION, harness.request(TrainingJobName="one", script="time.sleep(600)"))
        harness.wait_for_stage("Training", "one")
        for name in names[1:]:
            harness.jobs.training.create(REGION, harness.request(TrainingJobName=name, script="pass"))
            harness.wait_for_stage("Pending", name)
        waiting = harness.describe("three")
        assert waiting["TrainingJobStatus"] == "InProgress"
        assert waiting["SecondaryStatusTransitions"][-1]["StatusMessage"].endswith("1 job is before this one")
        # After a kill they would wait on.
        left = find_left_over(harness.store, harness.runtime, harness.settings)
        assert sorted(job.name for job in left.restarted_jobs) == ["three", "two"]
        harness.jobs.training.stop(REGION, "two")
        assert harness.wait("two")["TrainingJobStatus"] == "Stopped"
        assert harness.describe("three")["SecondaryStatus"] == "Pending"
        harness.jobs.training.stop(REGION, "one")
        done = harness.wait("three")
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages == ["Starting", "Pending", "Starting", "Downloading", "Training", "Uploading", "Completed"]
        assert harness.wait("one")["TrainingJobStatus"] == "Stopped"


def test_a_spot_job_waits_for_a_place_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_TELL_SECONDS", 0)
    with open_job_harness(tmp_path, max_jobs=1) as harness:
        harness.jobs.training.create(REGION, harness.request(TrainingJobName="one", script="time.sleep(600)"))
        harness.wait_for_stage("Training", "one")
        limits = {"MaxRuntimeInSeconds": 2, "MaxWaitTimeInSeconds": 2}
        spot = harness.request(TrainingJobName="two", EnableManagedSpotTraining=True, StoppingCondition=limits)
        harness.jobs.training.create(REGION, spot)
        done = harness.wait("two")
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages == ["Starting", "Pending", "Stopping", "MaxWaitTimeExceeded"]
        assert harness.describe("one")["TrainingJobStatus"] == "InProgress"


@pytest.mark.slow
def test_after_a_kill_the_running_job_keeps_its_place_and_the_others_their_order(tmp_path: Path) -> None:
    create = "harness.jobs.training.create(REGION, harness.request(waiting.pop(0), script='pass'))"
    condition = (
        "harness.describe()['SecondaryStatus'] == 'Training' "
        f"and all({create} or True for _ in list(waiting)) "
        "and all(harness.describe(name)['SecondaryStatus'] == 'Pending' for name in ('two', 'three'))"
    )
    before = "waiting = ['two', 'three']"
    bucket = run_and_kill(tmp_path, WAIT_FOR_GO, condition=condition, before=before, max_jobs=1)
    with recover(tmp_path, bucket, max_jobs=1) as harness:
        harness.jobs.recover()
        assert harness.describe()["SecondaryStatus"] == "Training"
        assert [harness.describe(name)["SecondaryStatus"] for name in ("two", "three")] == ["Pending", "Pending"]
        let_go(harness)
        jobs = [harness.wait(name) for name in ("job", "two", "three")]
    assert [job["TrainingJobStatus"] for job in jobs] == ["Completed"] * 3
    for earlier, later in pairwise(jobs):
        assert earlier["TrainingEndTime"] <= later["TrainingStartTime"]
