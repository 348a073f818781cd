"""More jobs than may run at once: they wait as Pending, and run one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.runs.recovery import find_left_over
from tests.room.emulator.jobs.job_room import REGION, open_room

if TYPE_CHECKING:
    from pathlib import Path


def test_jobs_wait_for_a_place_in_their_order(tmp_path: Path) -> None:
    with open_room(tmp_path, max_jobs=1) as room:
        names = ["one", "two", "three"]
        room.jobs.training.create(REGION, room.request(TrainingJobName="one", script="time.sleep(600)"))
        room.wait_for_stage("Training", "one")
        for name in names[1:]:
            room.jobs.training.create(REGION, room.request(TrainingJobName=name, script="pass"))
            room.wait_for_stage("Pending", name)
        waiting = room.describe("three")
        assert waiting["TrainingJobStatus"] == "InProgress"
        assert waiting["SecondaryStatusTransitions"][-1]["StatusMessage"].endswith("1 jobs are before this one")
        # After a kill they would wait on.
        left = find_left_over(room.store, room.runtime, room.settings)
        assert sorted(job.name for job in left.restarted_jobs) == ["three", "two"]
        room.jobs.training.stop(REGION, "two")
        assert room.wait("two")["TrainingJobStatus"] == "Stopped"
        assert room.describe("three")["SecondaryStatus"] == "Pending"
        room.jobs.training.stop(REGION, "one")
        done = room.wait("three")
        stages = [each["Status"] for each in done["SecondaryStatusTransitions"]]
        assert stages == ["Starting", "Pending", "Starting", "Downloading", "Training", "Uploading", "Completed"]
        assert room.wait("one")["TrainingJobStatus"] == "Stopped"
