"""Test of the first sections of docs/swarm.md, command for command.

Two bare machines become a Swarm, run a job, lose a node and are taken down.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.end_to_end.test_swarm_losses import PAGE, SAVE, Typist, list_jobs
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.docker, pytest.mark.timeout(1800)]
DOCTOR = "smdebug-emulator doctor --runtime swarm --state-dir /srv/smdebug/state"
START = "smdebug-emulator start --runtime swarm --state-dir /srv/smdebug/state --detach"
STOP = "smdebug-emulator stop --state-dir /srv/smdebug/state"
LEAVE = "docker swarm leave --force"


@pytest.fixture
def machines(granted_namespaces: None) -> Iterator[SwarmNodes]:
    """Two engines that know nothing of each other; the first has the image of the rules."""
    with tempfile.TemporaryDirectory(prefix="smd-") as folder:
        nodes = SwarmNodes(Path(folder) / "swarm", in_memory=True, linked=None)
        nodes.start(join=False)
        try:
            nodes.load("smdebug-emulator/sagemaker-debugger-rules:latest", onto=[nodes.manager])
            yield nodes
        finally:
            nodes.stop()


@pytest.fixture
def typist(machines: SwarmNodes, tmp_path: Path) -> Iterator[Typist]:
    """Somebody who follows the page, and leaves no emulator behind."""
    request = re.search(r'^```json title="job.json"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
    assert request is not None
    (tmp_path / "job.json").write_text(request[1])
    typist = Typist(machines, tmp_path)
    yield typist
    with contextlib.suppress(AssertionError):
        typist.type(STOP)


def test_the_page_leads_from_two_machines_to_a_job_and_back(machines: SwarmNodes, typist: Typist) -> None:
    manager, second = machines.nodes
    typist.type("docker swarm init --advertise-addr 192.0.2.11")
    token = typist.type("docker swarm join-token --quiet worker")
    typist.type("docker swarm join --token TOKEN 192.0.2.11:2377", on=second, TOKEN=token)
    found = typist.type(DOCTOR, code=1)
    assert f"({second.address}) has no agent and gets no tasks: No such image" in " ".join(found.split())
    assert "| ssh NODE docker load" in found
    typist.type(SAVE, second=second)
    # It lacks images of frameworks, which no job here needs.
    assert "has no agent" not in typist.type(DOCTOR, code=None)
    typist.type(START)
    typist.type(
        'eval "$(smdebug-emulator env --state-dir /srv/smdebug/state)"',
        "aws s3 mb s3://both",
        "aws sagemaker create-training-job --cli-input-json file://job.json",
    )

    def describe() -> str:
        shown = typist.type("smdebug-emulator describe NAME --state-dir /srv/smdebug/state", NAME="on-both")
        return " ".join(shown.split())

    def run_on_both() -> bool:
        return [len(list_jobs(node)) for node in machines.nodes] == [1, 1]

    wait_until(run_on_both, describe)
    assert f"({second.address}): ready" in typist.type("smdebug-emulator status --state-dir /srv/smdebug/state")
    machines.kill(second)
    waits = "1 node has too little free capacity for 2 containers at once"
    wait_until(lambda: waits in describe(), describe)
    machines.start_engine(second)
    machines.await_engine(second)
    with closing(manager.connect()) as engine, closing(second.connect()) as other:
        wait_until(run_on_both, describe)
        typist.type("smdebug-emulator stop-job on-both --state-dir /srv/smdebug/state")
        wait_until(lambda: "Stopped" in describe(), describe)
        typist.type(STOP)
        assert engine.services() == []
        for node in (second, manager):
            typist.type(LEAVE, on=node)
        assert [each.info()["Swarm"]["LocalNodeState"] for each in (engine, other)] == ["inactive"] * 2
        wait_until(lambda: engine.containers(all=True) == other.containers(all=True) == [])
