"""Which node a container on a Swarm gets: one that has room for it, whatever ran there before."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from container_runtime.swarm.engine import SwarmEngine
from tests.contract.test_docker_networks import build_spec
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from container_runtime.spec import ContainerSpec
    from tests.swarm_nodes import SwarmNodes

pytestmark = pytest.mark.docker
SLEEP = "import time; time.sleep(100000)"


@pytest.fixture
def engine(kept_agents: SwarmNodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[SwarmEngine]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{kept_agents.manager.socket}")
    engine = SwarmEngine(f"test-{uuid.uuid4().hex[:12]}", kept_agents.folder / "key")
    yield engine
    for container in engine.find({}):
        engine.remove(container.id)
    engine.close()


def build_large(source: str) -> ContainerSpec:
    """A container as large as a node: each node has room for one."""
    return build_spec(source, cpus=os.cpu_count())


def test_what_has_ended_takes_no_room(engine: SwarmEngine) -> None:
    staying = engine.start(build_large(SLEEP))
    for _ in range(3):
        # Each is on a network of its own, with which the manager looks again at the tasks of its node.
        ended = engine.start(build_large("print(0)"))
        assert engine.wait(ended, 60) is not None
        engine.remove(ended)
    beside = engine.start(build_large(SLEEP))
    assert {each.id for each in engine.find({}) if each.running} == {staying, beside}


def test_a_container_waits_until_a_node_has_room(engine: SwarmEngine) -> None:
    first, _ = (engine.start(build_large(SLEEP)) for _ in range(2))
    third = build_large(SLEEP)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(engine.start, third)
        waiting = wait_until(lambda: engine.describe()["waiting"])
        assert waiting == [{"container": third.name, "why": "no node has room: 2 of 2 are full"}]
        # What is small finds room beside.
        engine.remove(engine.start(build_spec("print(0)", cpus=None)))
        engine.remove(first)
        assert starting.result() in {each.id for each in engine.find({}) if each.running}
    assert engine.describe()["waiting"] == []
