"""``reset`` of everything: it asks, and what it forgot comes back."""

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from emulator.exceptions import ResourceInUse
from emulator.state.disk import DiskBudget
from emulator.state.kept_states import KEPT_SECONDS, MOST_KEPT, KeptStates
from sdk_compat.demo.training_job import build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator, open_forking_process
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-P", "-m", "emulator", "reset"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMDEBUG_EMULATOR_MOTO_API", "1")
        with ForkedEmulator(tmp_path_factory.mktemp("reset") / "state", runtime="process") as started:
            yield started


@pytest.fixture
def emulator(shared: ForkedEmulator) -> ForkedEmulator:
    """One that holds nothing, and has forgotten nothing."""
    reset(shared, "--all", "--yes", "--no-undo")
    for archive in (shared.state_dir / "forgotten").glob("*"):
        archive.unlink()
    return shared


@contextmanager
def following(emulator: ForkedEmulator) -> Iterator[list[str]]:
    """Run ``events --follow`` until Ctrl-C; the list gets its lines as they come."""
    command = [*COMMAND[:-1], "events", "--follow", "--json", "--state-dir", str(emulator.state_dir)]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lines.extend, args=(process.stdout,))
        reader.start()
        try:
            yield lines
        finally:
            process.send_signal(signal.SIGINT)
            reader.join()
    assert process.returncode == 0


def fill(emulator: ForkedEmulator, name: str) -> None:
    """Let it hold a job that failed, a bucket with an object, and a queue."""
    s3, sagemaker = (make_client(emulator.endpoint_url, service) for service in ("s3", "sagemaker"))
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="key", Body=name.encode())
    request = build_training_job(
        name, image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket=name
    )
    sagemaker.create_training_job(**request)
    wait_until(lambda: has_ended(sagemaker.describe_training_job(TrainingJobName=name)))
    make_client(emulator.endpoint_url, "sqs").create_queue(QueueName=name)


def read(emulator: ForkedEmulator) -> tuple[list[str], ...]:
    """Return the names of jobs, buckets and queues."""
    jobs: Any = make_client(emulator.endpoint_url, "sagemaker").list_training_jobs()
    buckets: Any = make_client(emulator.endpoint_url, "s3").list_buckets()
    queues: Any = make_client(emulator.endpoint_url, "sqs").list_queues()
    return (
        [each["TrainingJobName"] for each in jobs["TrainingJobSummaries"]],
        [each["Name"] for each in buckets["Buckets"]],
        [each.rpartition("/")[2] for each in queues.get("QueueUrls", ())],
    )


def reset(emulator: ForkedEmulator, *options: str, code: int = 0) -> str:
    """Run the command in this process, where it has been imported, and where no terminal answers it."""
    done = CliRunner().invoke(main, ["reset", *options, "--state-dir", str(emulator.state_dir)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def answer_reset(emulator: ForkedEmulator, answer: str) -> tuple[int, str]:
    """Reset on a terminal, and answer its question."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "--state-dir", str(emulator.state_dir)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        os.close(theirs)
        os.write(ours, answer.encode())
        out, _ = process.communicate(timeout=120)
    os.close(ours)
    return process.returncode, out.decode()


ONE: tuple[list[str], ...] = (["one"], ["one"], ["one"])
NOTHING: tuple[list[str], ...] = ([], [], [])


def test_everything_is_removed_only_with_the_confirming_option(emulator: ForkedEmulator) -> None:
    fill(emulator, "one")
    what = "1 job, 1 bucket with 2 objects, and all else in the emulator on"
    options: tuple[str, ...]
    for options in ((), ("--all",)):
        assert f"reset would delete {what}" in reset(emulator, *options, code=1)
        assert "confirm with --all --yes" in reset(emulator, *options, code=1)
    for options in (("--all", "--undo"), ("--all", "--job-name-prefix", "o"), ("--undo", "--job-name-prefix", "o")):
        assert "Give one of" in reset(emulator, *options, code=2)
    code, said = answer_reset(emulator, "n\n")
    assert (code, f"Delete {what}" in said, "Nothing was deleted." in said) == (1, True, True), said
    assert read(emulator) == ONE
    code, said = answer_reset(emulator, "y\n")
    assert (code, "Deleted everything, including 1 job." in said) == (0, True), said
    assert read(emulator) == NOTHING


def test_what_was_forgotten_comes_back_and_what_was_there_is_kept(emulator: ForkedEmulator) -> None:
    assert "Nothing can be undone" in reset(emulator, "--undo", code=1)
    fill(emulator, "one")
    said = reset(emulator, "--all", "--yes")
    assert f"within a day: smdebug-emulator reset --undo --state-dir {emulator.state_dir}\n" in said
    assert read(emulator) == NOTHING
    # There is nothing to keep, in place of what is kept.
    assert reset(emulator, "--all", "--yes") == "Deleted everything, including 0 jobs.\n"
    assert "Restored what was deleted at " in reset(emulator, "--undo")
    assert read(emulator) == ONE
    assert make_client(emulator.endpoint_url, "s3").get_object(Bucket="one", Key="key")["Body"].read() == b"one"
    assert "Nothing can be undone" in reset(emulator, "--undo", code=1), "what is there is no longer forgotten"
    reset(emulator, "--all", "--yes")
    fill(emulator, "two")
    reset(emulator, "--undo")
    assert read(emulator) == ONE
    reset(emulator, "--undo")
    assert read(emulator) == (["two"], ["two"], ["two"]), "what the first undo replaced"
    reset(emulator, "--all", "--yes", "--no-undo")
    reset(emulator, "--undo")
    assert read(emulator) == ONE, "nothing was kept of what --no-undo forgot"


def test_two_undos_at_once_lose_nothing(emulator: ForkedEmulator, tmp_path: Path) -> None:
    fill(emulator, "one")
    reset(emulator, "--all", "--yes")
    fill(emulator, "two")
    command = ["reset", "--undo", "--state-dir", str(emulator.state_dir)]
    with (tmp_path / "log").open("w") as log:
        both = [open_forking_process().fork(command, os.environ, log.fileno(), new_session=False) for _ in range(2)]
    for each in both:
        each.communicate()
    succeeded = [each.wait() for each in both].count(0)
    assert succeeded
    states = [read(emulator)]
    reset(emulator, "--undo")
    states.append(read(emulator))
    assert sorted(jobs for jobs, _, _ in states) == [["one"], ["two"]]


def test_jobs_that_run_are_stopped_and_kept_as_they_ended(emulator: ForkedEmulator) -> None:
    fill(emulator, "one")
    sagemaker = make_client(emulator.endpoint_url, "sagemaker")
    request = build_training_job(
        "runs",
        image="pytorch-training:2.13.0-cpu-py311",
        hyperparameters={},
        channels=(),
        collections={},
        bucket="one",
    )
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["python", "-c", "import time; time.sleep(600)"]
    sagemaker.create_training_job(**request)
    assert "2 jobs (jobs and rules that are running and will be stopped: 1)" in reset(emulator, code=1)
    reset(emulator, "--all", "--yes")
    reset(emulator, "--undo")
    assert sagemaker.describe_training_job(TrainingJobName="runs")["TrainingJobStatus"] == "Stopped"


def build_kept(folder: Path, reserve: int = 0) -> KeptStates:
    (folder / "s3").mkdir(exist_ok=True)
    return KeptStates(folder, DiskBudget(folder, reserve))


def test_a_few_are_kept_and_for_a_day(tmp_path: Path) -> None:
    kept = build_kept(tmp_path)
    try:
        last = [kept.keep().path for _ in range(MOST_KEPT + 2)][-MOST_KEPT:]
        assert sorted((tmp_path / "forgotten").iterdir()) == sorted(last)
    finally:
        kept.close()
    old = tmp_path / "forgotten" / f"{int((time.time() - KEPT_SECONDS - 60) * 1000)}.tar"
    last[0].rename(old)
    (tmp_path / "forgotten" / "5.partial").touch()
    again = build_kept(tmp_path)
    try:
        wait_until(lambda: not old.exists(), "the removal of what is older than a day")
        with again.take_last() as found:
            assert found is not None
            assert found.path == last[-1]
        assert sorted((tmp_path / "forgotten").iterdir()) == last[1:-1]
    finally:
        again.close()


def test_an_archive_written_while_old_ones_are_looked_for_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, glob = threading.Event(), Path.glob

    def list_slowly(folder: Path, pattern: str) -> Iterator[Path]:
        found = list(glob(folder, pattern))
        if threading.current_thread().name == "kept-states":
            assert written.wait(60)
        return iter(found)

    monkeypatch.setattr(Path, "glob", list_slowly)
    kept = build_kept(tmp_path)
    try:
        archive = kept.keep().path
    finally:
        written.set()
        kept.close()
    assert archive.exists()


def test_nothing_is_forgotten_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = build_kept(tmp_path, reserve=1 << 60)
    try:
        with pytest.raises(ResourceInUse, match=r"Nothing was deleted.* are to stay free.*--no-undo"):
            kept.keep()
        monkeypatch.setattr("emulator.state.kept_states.MOST_KEPT_BYTES", 10)
        (tmp_path / "s3" / "object").write_bytes(bytes(11))
        with pytest.raises(ResourceInUse, match=r"Nothing was deleted.*at most .* are kept"):
            kept.keep()
        assert not list(tmp_path.glob("forgotten/*"))
    finally:
        kept.close()


def test_a_state_that_cannot_be_kept_costs_none_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_disk(_state_dir: Path, target: Path) -> None:
        target.touch()
        raise sqlite3.OperationalError("database or disk is full")

    kept = build_kept(tmp_path)
    try:
        before = [kept.keep().path for _ in range(MOST_KEPT)]
        monkeypatch.setattr("emulator.state.kept_states.write_archive", fill_disk)
        with pytest.raises(ResourceInUse, match=r"Nothing was deleted.*disk is full"):
            kept.keep()
        assert sorted((tmp_path / "forgotten").iterdir()) == sorted(before)
    finally:
        kept.close()


def test_motos_own_reset_forgets_the_jobs_as_well(emulator: ForkedEmulator) -> None:
    fill(emulator, "one")
    sagemaker = make_client(emulator.endpoint_url, "sagemaker")
    role = "arn:aws:iam::123456789012:role/r"
    sagemaker.create_processing_job(
        ProcessingJobName="one",
        ProcessingResources={"ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}},
        AppSpecification={"ImageUri": "nobody-built:1"},
        RoleArn=role,
    )
    definition = {
        "Version": "2020-12-01",
        "Steps": [{"Name": "a", "Type": "Fail", "Arguments": {"ErrorMessage": "x"}}],
    }
    pipeline = {"PipelineName": "one", "PipelineDefinition": json.dumps(definition), "RoleArn": role}
    sagemaker.create_pipeline(**pipeline, ClientRequestToken="a" * 32)
    sagemaker.start_pipeline_execution(PipelineName="one", ClientRequestToken="a" * 32)
    with urlopen(f"{emulator.endpoint_url}/moto-api/reset", data=b"") as answer:
        assert json.load(answer) == {"status": "ok"}
    assert read(emulator) == NOTHING
    assert not sagemaker.list_processing_jobs()["ProcessingJobSummaries"]
    assert not sagemaker.list_pipelines()["PipelineSummaries"]
    # The names are free again.
    sagemaker.create_pipeline(**pipeline, ClientRequestToken="b" * 32)
    assert not sagemaker.list_pipeline_executions(PipelineName="one")["PipelineExecutionSummaries"]
    fill(emulator, "one")
    assert read(emulator) == ONE


@pytest.mark.usefixtures("interruptible")
def test_followed_events_go_on_after_a_reset(emulator: ForkedEmulator) -> None:
    fill(emulator, "one")
    with following(emulator) as lines:
        wait_until(lambda: any('"one"' in line for line in lines), lambda: lines)
        reset(emulator, "--all", "--yes", "--no-undo")
        fill(emulator, "two")
        wait_until(lambda: any('"two"' in line for line in lines), lambda: lines)


@pytest.mark.nightly  # what is written after any reset is on the disk at once
def test_what_follows_motos_own_reset_outlasts_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_EMULATOR_MOTO_API", "1")
    with ForkedEmulator(tmp_path / "state", runtime="process") as started:
        with urlopen(f"{started.endpoint_url}/moto-api/reset", data=b"") as answer:
            assert json.load(answer) == {"status": "ok"}
        fill(started, "one")
    with ForkedEmulator(tmp_path / "state", runtime="process") as again:
        assert read(again) == ONE
