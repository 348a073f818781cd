"""Tests of jobs whose Swarm node is drained, cut off or killed.

A job starts again on another node from its checkpoint, and never runs twice.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from emulator.cli.service.start_stop import start
from tests.end_to_end.finished_jobs import download_model, read_log, wait_until_ended
from tests.end_to_end.swarm_jobs import create_job, find_own_node, set_availability
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import docker

    from tests.running_emulator import RunningEmulator
    from tests.swarm_nodes import Node

PAGE = (Path(__file__).parents[2] / "docs" / "swarm.md").read_text(encoding="utf-8")
SAVE = "docker save smdebug-emulator/sagemaker-debugger-rules | ssh 192.0.2.12 docker load"
pytestmark = [pytest.mark.nightly, pytest.mark.docker]

# Each attempt adds a line to a checkpoint; what it writes later it writes ten times a second, until it may end.
TRAIN = """
import os, pathlib, time
checkpoint, model = pathlib.Path("/opt/ml/checkpoints/attempts"), pathlib.Path("/opt/ml/model")
attempt = len(checkpoint.read_text().splitlines()) + 1 if checkpoint.exists() else 1
with checkpoint.open("a") as file:
    file.write("attempt\\n")
print("attempt", attempt, "begins", flush=True)
while attempt < 4:
    try:
        (model / f"attempt-{attempt}").write_text(str(time.time()))
    except OSError as error:
        print(error.strerror, flush=True)
    time.sleep(0.1)
while not pathlib.Path("/opt/ml/input/config/go").exists():  # until it was looked at
    time.sleep(0.1)
(model / "end").write_text(checkpoint.read_text())
"""


class Typist:
    """Types commands of docs/swarm.md on machines: the first engine is the one on which they are typed."""

    def __init__(self, nodes: SwarmNodes, shared: Path) -> None:
        self._nodes, self._shared = nodes, shared

    def type(
        self, *commands: str, on: Node | None = None, second: Node | None = None, code: int | None = 0, **words: str
    ) -> str:
        """Type commands in one shell, which ends with a code, or any where it is None; return what they print."""
        assert all(f"    {command}\n" in PAGE for command in commands), "the page has another command"
        typed = "\n".join(commands)
        for old, new in {**words, "/srv/smdebug": str(self._shared)}.items():
            typed = typed.replace(old, new)
        typed = typed.replace("192.0.2.11", self._nodes.manager.address).replace("smdebug-emulator ", "emulator ")
        if second is not None:
            typed = typed.replace("ssh 192.0.2.12", f"env DOCKER_HOST=unix://{second.socket}")
        environment = {
            **os.environ,
            "DOCKER_HOST": f"unix://{(on or self._nodes.manager).socket}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SMDEBUG_EMULATOR_PORT": "0",
        }
        script = f'emulator() {{ "{sys.executable}" -m emulator "$@"; }}; set -e -o pipefail; {typed}'
        command = ["bash", "-c", script]
        done = subprocess.run(
            command, env=environment, cwd=self._shared, capture_output=True, text=True, timeout=300, check=False
        )
        assert code in (None, done.returncode), (typed, done.stdout, done.stderr)
        return done.stdout.strip()


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def three_nodes(granted_namespaces: None, shared: Path) -> Iterator[SwarmNodes]:
    """Nodes to be lost, joined as the page says: a manager that is to take no tasks, and two that do."""
    with tempfile.TemporaryDirectory(prefix="smd-") as folder:
        nodes = SwarmNodes(Path(folder) / "swarm", 3, in_memory=True, linked=None)
        nodes.start(join=False)
        try:
            nodes.load("smdebug-emulator/sagemaker-debugger-rules:latest", onto=[nodes.manager])
            typist = Typist(nodes, shared)
            typist.type("docker swarm init --advertise-addr 192.0.2.11")
            token = typist.type("docker swarm join-token --quiet worker")
            for node in nodes.nodes[1:]:
                typist.type("docker swarm join --token TOKEN 192.0.2.11:2377", on=node, TOKEN=token)
                typist.type(SAVE, second=node)
            yield nodes
        finally:
            nodes.stop()


@pytest.fixture(scope="module")
def losing_emulator(
    three_nodes: SwarmNodes, shared: Path, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{three_nodes.manager.socket}")
        patch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", str(shared))
        running = start_emulator("swarm", state_dir=shared / "state")
        yield running
        assert running.stop() == 0


def test_the_start_is_as_the_page_says(tmp_path: Path) -> None:
    """The fixtures' own starts have their port chosen, and their options as variables."""
    commands = re.findall(r"^    smdebug-emulator (start .*)$", PAGE, re.MULTILINE)
    carried, shared, copied = (
        start.make_context("start", shlex.split(each.replace("/srv/smdebug", str(tmp_path)))[1:]).params
        for each in commands
    )
    assert carried["runtime"] == shared["runtime"] == copied["runtime"] == "swarm"
    assert copied["s3_endpoint"] == "http://192.0.2.20:9000"
    assert carried["shared_folder"] is None
    assert shared["state_dir"].is_relative_to(shared["shared_folder"])


def test_a_job_outlasts_the_nodes_that_it_loses(
    losing_emulator: RunningEmulator, three_nodes: SwarmNodes, job_name: str
) -> None:
    emulator, nodes = losing_emulator, three_nodes
    sagemaker = emulator.client("sagemaker")
    with closing(nodes.manager.connect()) as api:
        set_availability(api, find_own_node(api), "pause")
        create_job(emulator, job_name, TRAIN, CheckpointConfig={"S3Uri": f"s3://{job_name}/checkpoints"})

        def find_place(attempt: int) -> tuple[str, Node]:
            """Wait for an attempt, and find where it is: the node's id, and the node."""
            wait_until(
                lambda: f"attempt {attempt} begins" in read_log(emulator, job_name),
                lambda: f"{sagemaker.describe_training_job(TrainingJobName=job_name)}\n{emulator.log_text()}",
            )
            # Nothing that is left of an earlier one: it is the job's only service.
            (service,) = api.services(filters={"label": "smdebug-emulator.host"})
            task = max(api.tasks({"service": service["ID"]}), key=itemgetter("CreatedAt"))
            address = api.inspect_node(task["NodeID"])["Status"]["Addr"]
            return task["NodeID"], next(each for each in nodes.nodes if each.address == address)

        first, node = find_place(1)
        typist = Typist(nodes, emulator.state_dir.parent)
        assert f"({node.address}): ready" in typist.type("smdebug-emulator status --state-dir /srv/smdebug/state")
        shown = typist.type("smdebug-emulator describe NAME --state-dir /srv/smdebug/state", NAME=job_name)
        assert re.search(rf"\({node.address}\).*\n    smdebug-{job_name}-\w+-algo-1$", shown), shown
        typist.type("docker node update --availability drain NODE", NODE=first)
        second, other = find_place(2)
        assert second != first
        wait_until(lambda: list_jobs(node) == [], "the drained node to end it")
        typist.type("docker node update --availability active NODE", NODE=first)
        wait_until(lambda: count_agents(api) == 3)

        nodes.cut(other)
        third, _ = find_place(3)
        assert third == first
        # It runs on, and knows nothing; but what it writes is not the job's any more.
        (lost,) = list_jobs(other)
        (folder,) = (emulator.state_dir / "jobs").glob(f"{job_name}-*/algo-1/model")
        wait_until(lambda: (folder / "attempt-3").exists())
        assert sorted(each.name for each in folder.iterdir()) == ["attempt-3"]
        with closing(other.connect()) as there:
            wait_until(lambda: b"No such file" in there.logs(lost["Id"], tail=5))
        nodes.mend(other)
        wait_until(lambda: list_jobs(other) == [], "its node, which is back, to end it")
        wait_until(lambda: count_agents(api) == 3)

        nodes.kill(node)
        fourth, _ = find_place(4)
        assert fourth == second
        (folder,) = (emulator.state_dir / "jobs").glob(f"{job_name}-*/algo-1/input/config")
        (folder / "go").touch()
    description = wait_until_ended(emulator, job_name)
    log = read_log(emulator, job_name)
    assert description["TrainingJobStatus"] == "Completed", (description, log)
    assert download_model(emulator, description) == {"end": b"attempt\n" * 4}
    restarts = [each for each in description["SecondaryStatusTransitions"] if each["Status"] == "Restarting"]
    assert len(restarts) == 3
    for address, why in ((node.address, "was drained"), (other.address, "is down"), (node.address, "is down")):
        assert f"({address}) of the Swarm {why}" in log


def list_jobs(node: Node) -> list[dict[str, Any]]:
    """List the containers of jobs that run on a node."""
    with closing(node.connect()) as api:
        return [each for each in api.containers() if "smdebug-emulator.door" in each["Labels"]]


def count_agents(api: docker.APIClient) -> int:
    tasks = api.tasks({"desired-state": "running"})
    nodes = {each["ID"] for each in api.nodes() if each["Status"]["State"] == "ready"}
    return sum(
        bool(task["Status"].get("PortStatus", {}).get("Ports"))
        for task in tasks
        if task["NodeID"] in nodes and task["Status"]["State"] == "running"
    )
