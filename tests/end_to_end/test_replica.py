"""Tests of an emulator restored from the replica of its state in another S3."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from emulator.components.ports import LOST_EXIT_CODE
from sdk_compat.demo.training_job import BUCKET, stage_inputs
from tests.end_to_end.finished_jobs import download_model, read_log, wait_until_ended
from tests.end_to_end.test_failures import build_script_request
from tests.other_s3 import VARIABLES, OtherS3, run_other_s3
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

# It goes on from its checkpoint, and waits for an object before it ends.
TRAIN = """
import json, os, pathlib, time, boto3
from botocore.exceptions import ClientError
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter
folder = json.load(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]))["LocalPath"]
checkpoint = pathlib.Path("/opt/ml/checkpoints" if os.path.isdir("/opt/ml/input") else
    os.environ["SAGEMAKER_BASE_DIR"] + "/checkpoints", "step")
begun = int(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"begins at {begun}", flush=True)
collections = CollectionManager()
collections.set_num_workers(1)
collections.export(folder, "worker_0_collections.json")
for step in range(begun, 5):
    with FileWriter(folder, "worker_0", step) as writer:
        writer.write_tensor(1.0, "loss")
checkpoint.write_text("5")
while True:
    try:
        said = boto3.client("s3").get_object(Bucket="BUCKET", Key="go")["Body"].read()
        break
    except ClientError:
        time.sleep(0.1)
pathlib.Path(os.environ["SM_MODEL_DIR"], "said").write_bytes(said)
print("ends", flush=True)
""".replace("BUCKET", BUCKET)


@pytest.fixture
def other_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherS3]:
    """Another S3, in which the emulators of the test keep a copy."""
    with run_other_s3() as other:
        for name, value in {**VARIABLES, "SMDEBUG_EMULATOR_S3_ENDPOINT": other.endpoint_url}.items():
            monkeypatch.setenv(name, value)
        yield other


# By day, integration/emulator/state/replica/test_replica.py restores folders, and test_recovery_around_jobs.py of
# integration/emulator/jobs/runs has jobs whose folders and containers are gone.
@pytest.mark.nightly
def test_a_job_continues_elsewhere_when_emulator_and_folder_are_gone(
    other_s3: OtherS3, start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    first = start_emulator("process", state_dir=tmp_path / "first" / "state", warm=False)
    stage_inputs(first.client("s3"))
    request = build_script_request(first, "moves", TRAIN)
    request["CheckpointConfig"] = {"S3Uri": f"s3://{BUCKET}/checkpoints/moves"}
    first.client("sqs").create_queue(QueueName="kept")
    first.client("s3").put_object(Bucket=BUCKET, Key="large", Body=b"x" * 1_000_000)
    first.client("sagemaker").create_training_job(**request)

    def has(key: str) -> bool:
        return bool(first.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"])

    wait_until(lambda: has("checkpoints/moves/step") and has("tensors/moves/debug-output/index"), first.log_text)
    wait_until(lambda: "begins at 0" in read_log(first, "moves"), first.log_text)
    # All that was before an answer which changed a job is in the copy.
    arn = first.client("sagemaker").describe_training_job(TrainingJobName="moves")["TrainingJobArn"]
    first.client("sagemaker").add_tags(ResourceArn=arn, Tags=[{"Key": "k", "Value": "v"}])
    first.kill()
    shutil.rmtree(first.state_dir)

    second = start_emulator("process", state_dir=tmp_path / "second" / "state", warm=False)
    assert second.client("s3").get_object(Bucket=BUCKET, Key="large")["Body"].read() == b"x" * 1_000_000
    second.client("s3").put_object(Bucket=BUCKET, Key="go", Body=b"go on")
    description = wait_until_ended(second, "moves")
    assert description["TrainingJobStatus"] == "Completed", (description, second.log_text())
    assert "Restarting" in [each["Status"] for each in description["SecondaryStatusTransitions"]]
    assert download_model(second, description) == {"said": b"go on"}
    assert "begins at 0" in read_log(second, "moves"), "what was logged before the kill is still there"
    assert "begins at 5" in read_log(second, "moves"), "its checkpoint was there"
    tensors = second.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="tensors/moves/debug-output/events")
    for each in tensors["Contents"]:
        second.client("s3").get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read()
    assert second.client("sqs").list_queues()["QueueUrls"][0].endswith("/kept")
    assert second.stop() == 0


ENDS_WHEN_REFUSED = f"""
import os, time, boto3
from botocore.config import Config
from botocore.exceptions import ClientError
s3 = boto3.client("s3", config=Config(retries={{"total_max_attempts": 1}}))
while True:
    try:
        s3.put_object(Bucket="{BUCKET}", Key="still", Body=b"")
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 503, error
        break
    time.sleep(0.2)
"""


@pytest.mark.nightly  # test_lease.py has the decisions
def test_an_emulator_that_is_cut_off_drives_no_job_until_it_has_its_lease_again(
    other_s3: OtherS3, start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    """The job's container ends meanwhile; another emulator might have the job by then."""
    emulator = start_emulator("process", state_dir=tmp_path / "state", warm=False)
    stage_inputs(emulator.client("s3"))
    sagemaker = emulator.client("sagemaker")
    sagemaker.create_training_job(**build_script_request(emulator, "waits", ENDS_WHEN_REFUSED))
    wait_until(lambda: emulator.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="still")["KeyCount"])
    other_s3.go_away()
    wait_until(lambda: "they wait until the lease is renewed" in emulator.log_text(), emulator.log_text)
    (worker,) = (emulator.state_dir / "containers").glob("*-algo-1*")
    wait_until(lambda: (worker / "exit.json").exists(), lambda: list(worker.iterdir()))
    description = sagemaker.describe_training_job(TrainingJobName="waits")
    assert description["TrainingJobStatus"] == "InProgress"
    with pytest.raises(sagemaker.exceptions.ClientError, match="Another emulator may have taken over"):
        sagemaker.stop_training_job(TrainingJobName="waits")
    other_s3.come_back()
    description = wait_until_ended(emulator, "waits")
    assert description["TrainingJobStatus"] == "Completed", description.get("FailureReason", "")
    other_s3.go_away()
    wait_until(lambda: "jobs wait" in read_copy(emulator), lambda: read_copy(emulator))
    emulator.process.send_signal(signal.SIGTERM)
    assert emulator.process.wait(timeout=120) == LOST_EXIT_CODE, emulator.log_text()
    assert "ends at once and stops no job" in emulator.log_text()
    other_s3.come_back()


def read_copy(emulator: RunningEmulator) -> str:
    """What its health says of the copy."""
    with urlopen(f"{emulator.endpoint_url}/_emulator/health") as health:
        return str(json.load(health)["copy"])


@pytest.mark.nightly
def test_two_emulators_never_write_one_bucket(
    other_s3: OtherS3, start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    first = start_emulator("process", state_dir=tmp_path / "first" / "state", warm=False)
    command = [sys.executable, "-m", "emulator", "start", "--runtime", "process", "--port", "0"]
    command += ["--log-level", "error", "--state-dir", str(tmp_path / "refused")]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert refused.returncode == 1
    said = refused.stderr.splitlines()[-1]
    assert f"(process {first.process.pid}, state folder {first.state_dir}) since" in said
    assert "--s3-bucket" in said

    first.process.send_signal(signal.SIGSTOP)  # as a machine that hangs, or is cut off
    second = start_emulator("process", state_dir=tmp_path / "second" / "state", warm=False)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(timeout=120) == LOST_EXIT_CODE, first.log_text()
    assert "ends at once" in first.log_text()
    first.kill()
    second.client("s3").create_bucket(Bucket="of-the-second")
    assert second.stop() == 0
    third = start_emulator("process", state_dir=first.state_dir, warm=False)
    third.client("s3").head_bucket(Bucket="of-the-second")  # its own folder is older than the copy
    assert third.stop() == 0
