"""Jobs that begin again: Spot instances that are taken from them, and internal errors that they may retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from container_runtime.runtime import ContainerRuntimeError
from emulator.exceptions import ValidationException
from tests.room.emulator.jobs.job_room import REGION
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.runtime import ResolvedImage
    from tests.room.emulator.jobs.job_room import Room

LOG = "/aws/sagemaker/TrainingJobs"
# Saves a checkpoint when it is told to end, and goes on from one that it finds.
SCRIPT = """
checkpoint = ml / "checkpoints/step"
if checkpoint.exists():
    print("goes on from", checkpoint.read_text(), flush=True)
    (ml / "model/m").touch()
    sys.exit()
def save(*_):
    checkpoint.write_text("7")
    sys.exit(1)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
"""
ATTEMPT = ["Starting", "Downloading", "Training"]


def spot_request(room: Room, **members: Any) -> dict[str, Any]:
    return room.request(
        script=SCRIPT,
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 700},
        CheckpointConfig={"S3Uri": f"s3://{room.bucket}/checkpoints"},
        **members,
    )


def start(room: Room, request: dict[str, Any]) -> None:
    room.jobs.training.create(REGION, request)
    room.wait_for_stage("Training")
    wait_until(lambda: "ready" in room.log(LOG, "job/"), room.describe)


def stages(description: dict[str, Any]) -> list[str]:
    return [each["Status"] for each in description["SecondaryStatusTransitions"]]


def test_an_interrupted_job_goes_on_from_its_checkpoint(room: Room) -> None:
    request = spot_request(room, DebugHookConfig=room.hook(), DebugRuleConfigurations=[room.rule("Passes", "pass")])
    start(room, request)
    room.jobs.training.interrupt(REGION, "job", 1.5)
    done = room.wait()
    assert done["TrainingJobStatus"] == "Completed", done
    assert stages(done) == [*ATTEMPT, "Interrupted", *ATTEMPT, "Uploading", "Completed"]
    log = room.log(LOG, "job/")
    assert log.index("ready") < log.index("goes on from 7")
    assert any("Spot instances were taken" in line for line in log)
    assert room.s3.get(room.bucket, "checkpoints/step") == b"7"
    assert "tensors/job/debug-output/training_job_end.ts" in room.stored()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
    # The time without an instance is not billed.
    times = {entry["Status"]: entry for entry in done["SecondaryStatusTransitions"]}
    assert times["Interrupted"]["EndTime"] - times["Interrupted"]["StartTime"] >= 1.5
    assert done["BillableTimeInSeconds"] < done["TrainingTimeInSeconds"]
    room.jobs.close()
    secondary = [event["detail"].get("SecondaryStatus") for event in room.publisher.events]
    assert "Interrupted" in secondary


def test_an_interrupted_job_may_be_stopped_or_wait_in_vain(room: Room) -> None:
    start(room, spot_request(room, DebugHookConfig=room.hook(), DebugRuleConfigurations=[room.rule("Passes", "pass")]))
    room.jobs.training.interrupt(REGION, "job", 600)
    room.wait_for_stage("Interrupted")
    with pytest.raises(ValidationException, match="Interrupted: it has no instances"):
        room.jobs.training.interrupt(REGION, "job", 0)
    room.jobs.training.stop(REGION, "job")
    done = room.wait()
    assert stages(done)[-3:] == ["Interrupted", "Stopping", "Stopped"]
    # Of what was saved before, nothing follows, and the rule that waits for it ends.
    assert "tensors/job/debug-output/training_job_end.ts" in room.stored()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] in ("NoIssuesFound", "Stopped")

    other = spot_request(room) | {"TrainingJobName": "other"}
    other["CheckpointConfig"] = {"S3Uri": f"s3://{room.bucket}/others"}
    other["StoppingCondition"] = {"MaxRuntimeInSeconds": 5, "MaxWaitTimeInSeconds": 5}
    room.jobs.training.create(REGION, other)
    room.jobs.training.interrupt(REGION, "other", 600)
    done = room.wait("other")
    assert done["TrainingJobStatus"] == "Stopped"
    assert stages(done)[-3:] == ["Interrupted", "Stopping", "MaxWaitTimeExceeded"]


def test_only_spot_instances_are_taken(room: Room) -> None:
    start(room, room.request(script="print('ready', flush=True); time.sleep(600)"))
    with pytest.raises(ValidationException, match="EnableManagedSpotTraining"):
        room.jobs.training.interrupt(REGION, "job", 0)
    room.jobs.training.stop(REGION, "job")
    room.wait()


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_internal_error_restarts_a_job_that_may_be(
    room: Room, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    real, failures = room.runtime.resolve_image, iter(range(2))

    def resolve(image: str, say: Callable[[str], None]) -> ResolvedImage:
        if next(failures, None) is not None:
            raise ContainerRuntimeError("the engine lost its mind")
        return real(image, say)

    monkeypatch.setattr(room.runtime, "resolve_image", resolve)
    done = room.run(room.request(RetryStrategy={"MaximumRetryAttempts": attempts}))
    failed = ["Starting", "Downloading", "Restarting"]
    if attempts == 2:
        assert done["TrainingJobStatus"] == "Completed"
        assert stages(done) == [*failed, *failed, *ATTEMPT, "Uploading", "Completed"]
    else:
        assert stages(done) == [*failed, "Starting", "Downloading", "Failed"]
        assert done["FailureReason"] == "InternalServerError: the engine lost its mind"
