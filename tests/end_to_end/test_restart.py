"""Tests of restarts: jobs are reattached, and nothing is left behind.

After a kill -9, after a clean stop, and with a second emulator.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from container_runtime.process.loopback_network import draw_port
from sdk_compat.demo.training_job import BUCKET, DIGITS, stage_inputs
from tests.end_to_end.finished_jobs import read_log
from tests.end_to_end.test_failures import build_script_request
from tests.running_emulator import BACK_ENDS, RunningEmulator
from tests.waiting import wait_until

# It waits for an object that the next emulator has.
OUTLIVES_AN_EMULATOR = f"""
print("alive", flush=True)
import os, pathlib, time, boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
s3 = boto3.client("s3", config=Config(retries={{"total_max_attempts": 1}}))
while True:
    try:
        s3.head_object(Bucket="{BUCKET}", Key="go")
        break
    except (BotoCoreError, ClientError):
        time.sleep(0.1)
pathlib.Path(os.environ["SM_MODEL_DIR"], "model.txt").write_text("grown up")
"""


def list_processes_naming(text: str) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listing.splitlines() if text in line and "ps -eo" not in line]


def list_containers(state_dir: Path) -> list[str]:
    import docker

    client = docker.from_env()
    try:
        # It lists, and then looks at each: one of another test may be removed in between.
        everything = client.containers.list(all=True, ignore_removed=True)
        return [str(c.name) for c in everything if str(state_dir) in str(c.attrs.get("Mounts", ""))]
    finally:
        client.close()


# By day, integration/emulator/jobs/runs/test_recovery.py has jobs that are found again, and
# integration/emulator/cli/test_service.py an emulator that was killed and starts again.
@pytest.mark.nightly
@pytest.mark.any_back_end
@pytest.mark.parametrize("runtime", BACK_ENDS)
def test_killed_emulator_reattaches_its_jobs_and_a_stopped_one_leaves_nothing_behind(
    runtime: str, start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    first = start_emulator(runtime, state_dir=tmp_path / "state", port=draw_port(), warm=False)
    stage_inputs(first.client("s3"))
    request = build_script_request(first, "survivor", OUTLIVES_AN_EMULATOR)
    parameters = {"rule_to_invoke": "VanishingGradient"}
    rule = {
        "RuleConfigurationName": "R",
        "RuleEvaluatorImage": "sagemaker-debugger-rules",
        "RuleParameters": parameters,
    }
    queue = first.client("sqs").create_queue(QueueName="ends")["QueueUrl"].rpartition("/")[2]
    pattern = {"source": ["aws.sagemaker"], "detail": {"TrainingJobStatus": ["Completed"]}}
    first.client("events").put_rule(Name="ends", EventPattern=json.dumps(pattern))
    target = {"Id": "queue", "Arn": "arn:aws:sqs:us-east-1:123456789012:ends"}
    first.client("events").put_targets(Rule="ends", Targets=[target])
    first.client("sagemaker").create_training_job(**request, DebugRuleConfigurations=[rule])

    def status(emulator: RunningEmulator) -> dict[str, Any]:
        description: dict[str, Any] = emulator.client("sagemaker").describe_training_job(TrainingJobName="survivor")
        return description

    def rules(emulator: RunningEmulator) -> list[dict[str, Any]]:
        return list(status(emulator)["DebugRuleEvaluationStatuses"])

    wait_until(lambda: "alive" in read_log(first, "survivor"), "the script to run")
    first.kill()

    second = start_emulator(runtime, state_dir=tmp_path / "state", port=first.port, warm=False)
    assert status(second)["TrainingJobStatus"] == "InProgress"
    second.client("s3").put_object(Bucket=BUCKET, Key="go", Body=b"")
    wait_until(lambda: status(second)["TrainingJobStatus"] != "InProgress", "the job to end")
    described = status(second)
    assert described["TrainingJobStatus"] == "Completed", (described, second.log_text())
    wait_until(lambda: rules(second)[0]["RuleEvaluationStatus"] != "InProgress", "the rule to end")
    # It waited for tensors all the while, and was not lost when nobody answered.
    assert "MissingCollectionFiles: The training job has ended" in rules(second)[0]["StatusDetails"]
    key = described["ModelArtifacts"]["S3ModelArtifacts"].removeprefix(f"s3://{BUCKET}/")
    second.client("s3").head_object(Bucket=BUCKET, Key=key)
    data = second.client("s3").get_object(Bucket=BUCKET, Key="data/digits.npz")
    assert data["Body"].read() == DIGITS.read_bytes(), "what was in S3 before is still there"
    message = wait_until(
        lambda: second.client("sqs").receive_message(QueueUrl=queue).get("Messages"), "the rule made before the kill"
    )
    assert json.loads(message[0]["Body"])["detail"]["TrainingJobName"] == "survivor"
    assert "alive" in read_log(second, "survivor"), "what was logged before the kill is still there"

    script = "import time\nprint('alive', flush=True)\ntime.sleep(600)"
    second.client("sagemaker").create_training_job(**build_script_request(second, "left-behind", script))
    wait_until(lambda: "alive" in read_log(second, "left-behind"), "the script to run")
    assert second.stop() == 0
    assert list_processes_naming(str(tmp_path)) == []
    if runtime == "docker":
        assert list_containers(tmp_path) == []


@pytest.mark.any_back_end
def test_port_taken_is_one_line_that_says_what_to_do(emulator: RunningEmulator, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "emulator", "start", "--runtime", "process"]
    second = subprocess.run(
        [*command, "--port", str(emulator.port), "--state-dir", str(tmp_path / "other")],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert second.returncode == 1
    assert len(second.stderr.strip().splitlines()) == 1
    assert str(emulator.port) in second.stderr
    assert "--port" in second.stderr
