"""Tests of state reset, export and import, and of initialisation scripts."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import requests
from click.testing import Result

from sdk_compat.demo.training_job import BUCKET, stage_inputs
from tests.commands import run_command
from tests.end_to_end.test_failures import build_script_request
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until


def ask(state_dir: Path, *arguments: str, code: int = 0) -> Result:
    return run_command(*arguments, "--state-dir", str(state_dir), code=code)


def test_everything_is_exported_forgotten_and_imported(
    start_emulator: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    emulator = start_emulator("process", state_dir=tmp_path / "state", warm=False)
    s3, sagemaker, sqs = (emulator.client(name) for name in ("s3", "sagemaker", "sqs"))
    stage_inputs(s3)
    queue = sqs.create_queue(QueueName="kept")["QueueUrl"].rpartition("/")[2]
    sqs.send_message(QueueUrl=queue, MessageBody="waiting")

    def list_jobs() -> list[str]:
        return sorted(job["TrainingJobName"] for job in sagemaker.list_training_jobs()["TrainingJobSummaries"])

    script = "import time; print('alive', flush=True); time.sleep(600)"
    for name in ("a-runs", "b-runs"):
        sagemaker.create_training_job(**build_script_request(emulator, name, script))
    assert "2 jobs" in ask(tmp_path / "state", "state", "export", str(tmp_path / "refused.tar"), code=1).stderr

    assert requests.get(f"{emulator.endpoint_url}/_emulator/state", timeout=400).status_code == 409
    assert ask(tmp_path / "state", "reset", "--job-name-prefix", "a-").stdout == "Deleted 1 job.\n"
    assert list_jobs() == ["b-runs"]
    assert sagemaker.describe_training_job(TrainingJobName="b-runs")["TrainingJobStatus"] == "InProgress"
    assert s3.list_buckets()["Buckets"], "with a prefix, S3 stays"

    # What a-runs left goes, its name forgotten or not; nothing of b-runs does.
    kept = tmp_path / "state" / "jobs" / "failed-0123456789ab"
    kept.mkdir()
    (kept / "model").write_bytes(bytes(100_000))
    (kept / "elsewhere").symlink_to(tmp_path)

    def list_left(*bounds: str) -> set[tuple[str, str]]:
        told = ask(tmp_path / "state", "prune", "--dry-run", "--json", *bounds)
        return {(each["kind"], each["job"]) for each in json.loads(told.stdout)}

    assert list_left() == {("log", "a-runs"), ("folder", "failed")}
    assert list_left("--older-than", "1h") == list_left("--keep", "1G") == set()
    assert list_left("--keep", "0") == list_left("--older-than", "0s") == {("log", "a-runs"), ("folder", "failed")}
    for wrong in (("--older-than", "7"), ("--keep", "much")):
        assert f"'{wrong[1]}' is not a" in ask(tmp_path / "state", "prune", *wrong, code=2).stderr
    refused_bound = requests.post(f"{emulator.endpoint_url}/_emulator/prune?olderThanSeconds=nan", timeout=400)
    assert (refused_bound.status_code, "olderThanSeconds" in refused_bound.json()["error"]) == (400, True)
    unasked = ask(tmp_path / "state", "prune", code=1)
    assert re.search(r"would remove 2 items of ended jobs, 1\d\d kB: confirm with --yes", unasked.stderr)
    assert list_left() == {("log", "a-runs"), ("folder", "failed")}
    pruned = ask(tmp_path / "state", "prune", "--yes")
    assert re.search(r"^2 removed, 1\d\d kB\.$", pruned.stdout, re.MULTILINE)
    assert re.search(r"^log +\d+ k?B  ", pruned.stdout, re.MULTILINE)
    assert [path.name.rpartition("-")[0] for path in kept.parent.iterdir()] == ["b-runs"]
    assert list_left() == set()
    streams = emulator.client("logs").describe_log_streams(logGroupName="/aws/sagemaker/TrainingJobs")["logStreams"]
    assert [stream["logStreamName"].partition("/")[0] for stream in streams] == ["b-runs"]
    assert sagemaker.describe_training_job(TrainingJobName="b-runs")["TrainingJobStatus"] == "InProgress"

    sagemaker.stop_training_job(TrainingJobName="b-runs")
    wait_until(
        lambda: sagemaker.describe_training_job(TrainingJobName="b-runs")["TrainingJobStatus"] == "Stopped", "the end"
    )
    objects = [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
    archive = tmp_path / "state.tar"
    ask(tmp_path / "state", "state", "export", str(archive))

    sagemaker.create_training_job(**build_script_request(emulator, "c-runs", script))
    ask(tmp_path / "state", "reset", "--all", "--yes", "--no-undo")
    assert list_jobs() == []
    assert s3.list_buckets()["Buckets"] == []
    assert "QueueUrls" not in sqs.list_queues()

    (tmp_path / "none.tar").write_bytes(b"no archive")
    refused = ask(tmp_path / "state", "state", "import", str(tmp_path / "none.tar"), code=1)
    assert "not an archive of an emulator's state" in refused.stderr
    assert "give a file that smdebug-emulator state export wrote" in refused.stderr
    ask(tmp_path / "state", "state", "import", str(archive))
    assert list_jobs() == ["b-runs"]
    assert [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])] == objects
    assert sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "waiting"
    page = {"Origin": "http://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    assert requests.post(f"{emulator.endpoint_url}/_emulator/reset", headers=page, timeout=400).status_code == 403
    assert emulator.stop() == 0


def test_scripts_run_in_order_before_the_first_line(tmp_path: Path) -> None:
    folder = tmp_path / "init"
    folder.mkdir()
    (folder / "1-note.sh").write_text(f"echo -n v > {tmp_path}/note\n")
    (folder / "2-fails.sh").write_text("echo it went wrong; exit 3\n")
    (folder / "3-object.py").write_text(
        "import boto3\ns3 = boto3.client('s3')\ns3.create_bucket(Bucket='made')\n"
        f"s3.upload_file('{tmp_path}/note', 'made', 'k')\n"
    )
    (folder / "notes.txt").write_text("no script")
    given = ["--init-folder", str(folder)]
    with RunningEmulator(tmp_path / "state", runtime="process", warm=False, arguments=given) as emulator:
        body = emulator.client("s3").get_object(Bucket="made", Key="k")["Body"].read()
        assert body == b"v"
        said = emulator.log_text()
        assert "2-fails.sh of --init-folder failed with exit code 3. It said last:\nit went wrong" in said
        assert "notes.txt" not in said
