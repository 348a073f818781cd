"""Tests of Swarm jobs whose manager fails or whose emulator moves.

The manager's engine is killed and returns, or the emulator continues at another manager.
"""

import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from container_runtime.process.loopback_network import draw_port
from tests.end_to_end.finished_jobs import download_model, read_log, wait_until_ended
from tests.end_to_end.swarm_jobs import create_job, start_nodes
from tests.end_to_end.test_swarm_losses import Typist
from tests.other_s3 import VARIABLES, run_other_s3
from tests.running_emulator import RunningEmulator
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.docker]

# It ends when an object is there, which it asks the emulator for.
TRAIN = """
import boto3, pathlib, sys, time
from botocore.exceptions import ClientError
bucket = sys.argv[1]
print("begins", flush=True)
while True:
    try:
        said = boto3.client("s3").get_object(Bucket=bucket, Key="go")["Body"].read()
        break
    except ClientError:
        time.sleep(0.2)
pathlib.Path("/opt/ml/model/said").write_bytes(said)
print("ends", flush=True)
"""


@pytest.fixture
def nodes(granted_namespaces: None) -> Iterator[SwarmNodes]:
    """A manager that takes no tasks but its agent, and a worker."""
    with start_nodes(2) as nodes:
        yield nodes


@pytest.fixture
def start_there(
    start_emulator: Callable[..., RunningEmulator], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Path, int], RunningEmulator]]:
    """Start an emulator on a state folder, at the manager with a socket."""
    with tempfile.TemporaryDirectory() as shared:
        monkeypatch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", shared)

        def start(at: Path, port: int = 0) -> RunningEmulator:
            monkeypatch.setenv("DOCKER_HOST", f"unix://{at}")
            return start_emulator("swarm", state_dir=Path(shared) / "state", port=port or draw_port())

        yield start


@pytest.fixture
def start_alone(
    start_emulator: Callable[..., RunningEmulator], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[Path, int], RunningEmulator]]:
    """Start an emulator at the manager with a socket, with its state in another S3, too, and no folder in common."""
    with run_other_s3() as other:
        for name, value in {**VARIABLES, "SMDEBUG_EMULATOR_S3_ENDPOINT": other.endpoint_url}.items():
            monkeypatch.setenv(name, value)

        def start(at: Path, port: int = 0) -> RunningEmulator:
            monkeypatch.setenv("DOCKER_HOST", f"unix://{at}")
            return start_emulator("swarm", state_dir=tmp_path / "state", port=port or draw_port())

        yield start


def begin_job(emulator: RunningEmulator, job: str) -> None:
    """Start a job, and wait until it runs."""
    create_job(emulator, job, TRAIN, arguments=(job,))
    wait_until(lambda: "begins" in read_log(emulator, job), emulator.log_text)


def end_job(emulator: RunningEmulator, job: str) -> None:
    """Let the job end, and see that it did so once, as if nothing had been."""
    emulator.client("s3").put_object(Bucket=job, Key="go", Body=b"go on")
    description = wait_until_ended(emulator, job)
    log = read_log(emulator, job)
    assert description["TrainingJobStatus"] == "Completed", (description, log, emulator.log_text())
    assert download_model(emulator, description) == {"said": b"go on"}
    assert [line for line in log.splitlines() if line in ("begins", "ends")] == ["begins", "ends"]
    assert "Restarting" not in [each["Status"] for each in description["SecondaryStatusTransitions"]]


def test_a_job_outlasts_the_restart_of_the_manager_s_engine(
    nodes: SwarmNodes, start_there: Callable[..., RunningEmulator], job_name: str
) -> None:
    emulator = start_there(nodes.manager.socket)
    begin_job(emulator, job_name)
    nodes.end_engine(nodes.manager, signal.SIGKILL)
    with urlopen(f"{emulator.endpoint_url}/_emulator/health") as answer:
        assert "no Docker engine answers" in json.load(answer)["swarm"]["error"]
    nodes.start_engine(nodes.manager)
    nodes.await_engine(nodes.manager)
    end_job(emulator, job_name)
    assert emulator.stop() == 0


def promote_other(nodes: SwarmNodes, folder: Path) -> Callable[[], bool]:
    """Make the other node a manager, too; returns what tells whether it is one."""
    with closing(nodes.manager.connect()) as api:
        (other,) = [each["ID"] for each in api.nodes() if each["Status"]["Addr"] == nodes.nodes[1].address]
    Typist(nodes, folder).type("docker node promote NODE", NODE=other)

    def commands() -> bool:
        with closing(nodes.nodes[1].connect()) as api:
            return bool(api.info()["Swarm"]["ControlAvailable"])

    return commands


def test_an_emulator_at_another_manager_reattaches_its_jobs(
    nodes: SwarmNodes, start_there: Callable[..., RunningEmulator], job_name: str
) -> None:
    emulator = start_there(nodes.manager.socket)
    begin_job(emulator, job_name)
    commands = promote_other(nodes, emulator.state_dir.parent)
    emulator.kill()
    wait_until(commands)
    successor = start_there(nodes.nodes[1].socket, emulator.port)
    end_job(successor, job_name)
    assert successor.stop() == 0
    with closing(nodes.manager.connect()) as api:
        wait_until(lambda: not api.services())


def test_an_emulator_without_its_folder_reattaches_its_jobs_from_another_s3(
    nodes: SwarmNodes, start_alone: Callable[..., RunningEmulator], job_name: str
) -> None:
    emulator = start_alone(nodes.manager.socket)
    begin_job(emulator, job_name)
    commands = promote_other(nodes, emulator.state_dir)
    # All that was before an answer which changed a job is in the copy.
    arn = emulator.client("sagemaker").describe_training_job(TrainingJobName=job_name)["TrainingJobArn"]
    emulator.client("sagemaker").add_tags(ResourceArn=arn, Tags=[{"Key": "k", "Value": "v"}])
    emulator.kill()
    shutil.rmtree(emulator.state_dir)
    wait_until(commands)
    successor = start_alone(nodes.nodes[1].socket, emulator.port)
    end_job(successor, job_name)
    assert successor.stop() == 0
    with closing(nodes.manager.connect()) as api:
        wait_until(lambda: not api.services())
