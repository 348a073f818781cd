"""Tests of restarted jobs: Spot interruptions and retried internal errors."""

from collections.abc import Callable
from typing import Any

import pytest

from container_runtime.runtime import ContainerRuntimeError, ResolvedImage
from emulator.exceptions import ValidationException
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until

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


def spot_request(harness: JobHarness, **members: Any) -> dict[str, Any]:
    return harness.request(
        script=SCRIPT,
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 700},
        CheckpointConfig={"S3Uri": f"s3://{harness.bucket}/checkpoints"},
        **members,
    )


def start(harness: JobHarness, request: dict[str, Any]) -> None:
    harness.jobs.training.create(REGION, request)
    harness.wait_for_stage("Training")
    wait_until(lambda: "ready" in harness.log(LOG, "job/"), harness.describe)


def stages(description: dict[str, Any]) -> list[str]:
    return [each["Status"] for each in description["SecondaryStatusTransitions"]]


@pytest.mark.slow
def test_an_interrupted_job_continues_from_its_checkpoint(harness: JobHarness) -> None:
    request = spot_request(
        harness, DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("Passes", "pass")]
    )
    start(harness, request)
    harness.jobs.training.interrupt(REGION, "job", 1.5)
    done = harness.wait()
    assert done["TrainingJobStatus"] == "Completed", done
    assert stages(done) == [*ATTEMPT, "Interrupted", *ATTEMPT, "Uploading", "Completed"]
    log = harness.log(LOG, "job/")
    assert log.index("ready") < log.index("goes on from 7")
    assert any("Spot instances were taken" in line for line in log)
    assert harness.s3.get(harness.bucket, "checkpoints/step") == b"7"
    assert "tensors/job/debug-output/training_job_end.ts" in harness.stored()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "NoIssuesFound"
    # The time without an instance is not billed.
    times = {entry["Status"]: entry for entry in done["SecondaryStatusTransitions"]}
    assert times["Interrupted"]["EndTime"] - times["Interrupted"]["StartTime"] >= 1.5
    assert done["BillableTimeInSeconds"] < done["TrainingTimeInSeconds"]
    harness.jobs.close()
    secondary = [event["detail"].get("SecondaryStatus") for event in harness.publisher.events]
    assert "Interrupted" in secondary


@pytest.mark.slow
def test_an_interrupted_job_may_be_stopped_or_wait_in_vain(harness: JobHarness) -> None:
    start(
        harness,
        spot_request(harness, DebugHookConfig=harness.hook(), DebugRuleConfigurations=[harness.rule("Passes", "pass")]),
    )
    harness.jobs.training.interrupt(REGION, "job", 600)
    harness.wait_for_stage("Interrupted")
    with pytest.raises(ValidationException, match="Interrupted: it has no instances"):
        harness.jobs.training.interrupt(REGION, "job", 0)
    harness.jobs.training.stop(REGION, "job")
    done = harness.wait()
    assert stages(done)[-3:] == ["Interrupted", "Stopping", "Stopped"]
    # Of what was saved before, nothing follows, and the rule that waits for it ends.
    assert "tensors/job/debug-output/training_job_end.ts" in harness.stored()
    assert done["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] in ("NoIssuesFound", "Stopped")

    other = spot_request(harness) | {"TrainingJobName": "other"}
    other["CheckpointConfig"] = {"S3Uri": f"s3://{harness.bucket}/others"}
    other["StoppingCondition"] = {"MaxRuntimeInSeconds": 15, "MaxWaitTimeInSeconds": 15}
    harness.jobs.training.create(REGION, other)
    harness.jobs.training.interrupt(REGION, "other", 600)
    done = harness.wait("other")
    assert done["TrainingJobStatus"] == "Stopped"
    assert stages(done)[-3:] == ["Interrupted", "Stopping", "MaxWaitTimeExceeded"]


def test_only_spot_instances_are_taken(harness: JobHarness) -> None:
    start(harness, harness.request(script="print('ready', flush=True); time.sleep(600)"))
    with pytest.raises(ValidationException, match="EnableManagedSpotTraining"):
        harness.jobs.training.interrupt(REGION, "job", 0)
    harness.jobs.training.stop(REGION, "job")
    harness.wait()


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_internal_error_restarts_a_job_that_may_be(
    harness: JobHarness, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    real, failures = harness.runtime.resolve_image, iter(range(2))

    def resolve(image: str, say: Callable[[str], None]) -> ResolvedImage:
        if next(failures, None) is not None:
            raise ContainerRuntimeError("the engine lost its mind")
        return real(image, say)

    monkeypatch.setattr(harness.runtime, "resolve_image", resolve)
    done = harness.run(harness.request(RetryStrategy={"MaximumRetryAttempts": attempts}))
    failed = ["Starting", "Downloading", "Restarting"]
    if attempts == 2:
        assert done["TrainingJobStatus"] == "Completed"
        assert stages(done) == [*failed, *failed, *ATTEMPT, "Uploading", "Completed"]
    else:
        assert stages(done) == [*failed, "Starting", "Downloading", "Failed"]
        assert done["FailureReason"] == "InternalServerError: the engine lost its mind"
