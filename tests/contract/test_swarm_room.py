"""Which node a container on a Swarm gets: one that has room for it, whatever ran there before."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.contract.test_docker_networks import build_spec
from tests.waiting import wait_until

if TYPE_CHECKING:
    from container_runtime.spec import ContainerSpec
    from container_runtime.swarm.engine import SwarmEngine

pytestmark = pytest.mark.docker
SLEEP = "import time; time.sleep(100000)"


def build_large(source: str) -> ContainerSpec:
    """A container as large as a node: each node has room for one."""
    return build_spec(source, cpus=os.cpu_count())


def test_what_has_ended_takes_no_room(swarm_engine: SwarmEngine) -> None:
    staying = swarm_engine.start(build_large(SLEEP))
    for _ in range(3):
        # Each is on a network of its own, with which the manager looks again at the tasks of its node.
        ended = swarm_engine.start(build_large("print(0)"))
        assert swarm_engine.wait(ended, 60) is not None
        swarm_engine.remove(ended)
    beside = swarm_engine.start(build_large(SLEEP))
    assert {each.id for each in swarm_engine.find({}) if each.running} == {staying, beside}


def test_a_container_waits_until_a_node_has_room(swarm_engine: SwarmEngine) -> None:
    first, _ = (swarm_engine.start(build_large(SLEEP)) for _ in range(2))
    third = build_large(SLEEP)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(swarm_engine.start, third)
        waiting = wait_until(lambda: swarm_engine.describe()["waiting"])
        assert waiting == [{"container": third.name, "why": "no node has room: 2 of 2 are full"}]
        # What is small finds room beside.
        swarm_engine.remove(swarm_engine.start(build_spec("print(0)", cpus=None)))
        swarm_engine.remove(first)
        assert starting.result() in {each.id for each in swarm_engine.find({}) if each.running}
    assert swarm_engine.describe()["waiting"] == []
