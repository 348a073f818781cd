"""Tests of Swarm scheduling: containers get nodes that have capacity for them."""

import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from docker.types import ContainerSpec as EngineContainerSpec
from docker.types import ServiceMode, TaskTemplate

from container_runtime.runtime import NetworkExhaustedError
from container_runtime.spec import ContainerSpec
from container_runtime.swarm import capacity
from container_runtime.swarm.engine import SwarmEngine
from container_runtime.swarm.reservations import RESERVED_LABEL, Reservations
from tests.contract.test_docker_networks import build_spec
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = pytest.mark.docker
SLEEP = "import time; time.sleep(100000)"


@pytest.fixture
def second_engine(swarm_engine: SwarmEngine, tmp_path: Path) -> Iterator[SwarmEngine]:
    """The back end of another emulator on the same Swarm."""
    engine = type(swarm_engine)(f"test-{uuid.uuid4().hex[:12]}", tmp_path / "key")
    yield engine
    for container in engine.find({}):
        engine.remove(container.id)
    engine.close()


def build_large(source: str) -> ContainerSpec:
    """A container as large as a node: each node has capacity for one."""
    return build_spec(source, cpus=os.cpu_count())


@pytest.mark.nightly
def test_what_has_ended_takes_no_capacity(swarm_engine: SwarmEngine) -> None:
    staying = swarm_engine.start(build_large(SLEEP))
    for _ in range(3):
        # Each is on a network of its own, with which the manager looks again at the tasks of its node.
        ended = swarm_engine.start(build_large("print(0)"))
        assert swarm_engine.wait(ended, 60) is not None
        swarm_engine.remove(ended)
    beside = swarm_engine.start(build_large(SLEEP))
    assert {each.id for each in swarm_engine.find({}) if each.running} == {staying, beside}


@pytest.mark.nightly  # the next test also has one container wait for a node
def test_a_container_waits_until_a_node_has_capacity(swarm_engine: SwarmEngine) -> None:
    first, _ = (swarm_engine.start(build_large(SLEEP)) for _ in range(2))
    third = build_large(SLEEP)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(swarm_engine.start, third)
        waiting = wait_until(lambda: swarm_engine.describe()["waiting"])
        assert waiting == [{"container": third.name, "why": "2 of 2 nodes have too little free capacity"}]
        # What is small finds capacity beside.
        swarm_engine.remove(swarm_engine.start(build_spec("print(0)", cpus=None)))
        swarm_engine.remove(first)
        assert starting.result() in {each.id for each in swarm_engine.find({}) if each.running}
    assert swarm_engine.describe()["waiting"] == []


def list_waiting(engine: SwarmEngine) -> dict[str, str]:
    return {each["container"]: each["why"] for each in engine.describe()["waiting"]}


def test_nodes_of_one_job_are_kept_at_once(swarm_engine: SwarmEngine, swarm_nodes: SwarmNodes) -> None:
    """What other emulators have reserved is taken: no container need run."""
    alone, pair = build_large(SLEEP), [build_large(SLEEP) for _ in range(2)]
    kept, go_on = threading.Event(), threading.Event()

    def keep_pair() -> None:
        with swarm_engine.reserve_capacity(pair, lambda: None):
            kept.set()
            assert go_on.wait(60)

    def keep_alone() -> None:
        with swarm_engine.reserve_capacity([alone], lambda: None):
            assert list_waiting(swarm_engine) == {}

    with closing(swarm_nodes.manager.connect()) as api, ThreadPoolExecutor(2) as pool:
        other = Reservations(api, "another emulator")
        node = api.nodes()[0]
        reserved = other.publish([(node["ID"], f"{node['Description']['Resources']['NanoCPUs']} 0")])
        try:
            keeping = pool.submit(keep_pair)
            wait_until(lambda: list_waiting(swarm_engine).keys() == {each.name for each in pair})
            why = set(list_waiting(swarm_engine).values())
            assert why == {"2 nodes have too little free capacity for 2 containers at once"}
            # One node has capacity, and another container would take it.
            coming = pool.submit(keep_alone)
            names = ", ".join(each.name for each in pair)
            wait_until(
                lambda: list_waiting(swarm_engine).get(alone.name) == f"{names} waits longer for as much, or for less"
            )
        finally:
            other.withdraw(reserved)
        assert kept.wait(60)
        wait_until(lambda: list_waiting(swarm_engine) == {alone.name: "2 of 2 nodes have too little free capacity"})
        go_on.set()
        keeping.result()
        coming.result()


@pytest.mark.nightly  # by day the test before this one, without containers
def test_containers_of_one_job_get_their_nodes_at_once(swarm_engine: SwarmEngine) -> None:
    alone, later, pair = build_large(SLEEP), build_large(SLEEP), [build_large(SLEEP) for _ in range(2)]
    staying = swarm_engine.start(alone)
    started, go_on = threading.Event(), threading.Event()

    def start_pair() -> list[str]:
        with swarm_engine.reserve_capacity(pair, lambda: None):
            first = swarm_engine.start(pair[0])
            started.set()
            assert go_on.wait(60)
            return [first, swarm_engine.start(pair[1])]

    with ThreadPoolExecutor(2) as pool:
        starting = pool.submit(start_pair)
        wait_until(lambda: list_waiting(swarm_engine).keys() == {each.name for each in pair})
        assert set(list_waiting(swarm_engine).values()) == {
            "2 nodes have too little free capacity for 2 containers at once"
        }
        # One node has capacity, and another container would take it.
        coming = pool.submit(swarm_engine.start, later)
        names = ", ".join(each.name for each in pair)
        behind = f"{names} waits longer for as much, or for less"
        wait_until(lambda: list_waiting(swarm_engine).get(later.name) == behind)
        swarm_engine.remove(staying)
        assert started.wait(60)
        # The second of the pair has no container yet, and its node all the same.
        wait_until(lambda: list_waiting(swarm_engine) == {later.name: "2 of 2 nodes have too little free capacity"})
        go_on.set()
        for each in starting.result():
            swarm_engine.remove(each)
        assert coming.result() in {each.id for each in swarm_engine.find({}) if each.running}
    assert list_waiting(swarm_engine) == {}


@pytest.mark.nightly
def test_two_emulators_do_not_wait_for_each_others_halves(
    swarm_engine: SwarmEngine, second_engine: SwarmEngine
) -> None:
    """Each wants both nodes, at once: one gets both, and the other both when they are free again."""
    at_once = threading.Barrier(2)
    lock = threading.Lock()
    running: list[int] = [0, 0]

    def run_pair(engine: SwarmEngine) -> None:
        pair = [build_large(SLEEP) for _ in range(2)]
        at_once.wait(60)
        with engine.reserve_capacity(pair, lambda: None):
            started = [engine.start(each) for each in pair]
        with lock:
            running[0] += 2
            running[1] = max(running)
        for each in started:
            # Its capacity is free, and the other may have it, before its removal has returned.
            with lock:
                running[0] -= 1
            engine.remove(each)

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(run_pair, engine) for engine in (swarm_engine, second_engine)]:
            each.result(120)
    assert running == [0, 2]
    assert swarm_engine.describe()["waiting"] == second_engine.describe()["waiting"] == []


def test_of_two_reservations_at_once_the_earlier_counts(swarm_nodes: SwarmNodes) -> None:
    with closing(swarm_nodes.manager.connect()) as api:
        one, other = Reservations(api, "one"), Reservations(api, "other")
        first = one.publish([("n1", "5 6"), ("n2", "7 8")])
        second = other.publish([("n1", "9 9")])
        assert list(one.list_others(first)) == []
        assert list(other.list_others(second)) == [("n1", "5 6"), ("n2", "7 8")]
        assert list(one.list_others()) == [("n1", "9 9")]
        one.withdraw_all()
        assert list(other.list_others()) == []
        other.withdraw(second)
        other.withdraw(second)
        assert api.configs(filters={"label": [RESERVED_LABEL]}) == []


def test_a_waiting_job_is_asked_whether_it_still_waits(swarm_engine: SwarmEngine) -> None:
    wanted = [build_large(SLEEP) for _ in range(3)]

    def check() -> None:
        raise InterruptedError(sorted(list_waiting(swarm_engine)))

    names = ".*".join(sorted(each.name for each in wanted))
    with pytest.raises(InterruptedError, match=names), swarm_engine.reserve_capacity(wanted, check):
        pytest.fail("there was capacity")
    assert swarm_engine.describe()["waiting"] == []


def test_what_no_node_is_large_enough_for_keeps_nobody_waiting(
    swarm_engine: SwarmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    three = [build_large(SLEEP) for _ in range(3)]

    def wait_for_three() -> None:
        with swarm_engine.reserve_capacity(three, lambda: None):
            pytest.fail("two nodes have capacity for two")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait_for_three)
        wait_until(lambda: len(swarm_engine.describe()["waiting"]) == 3)
        swarm_engine.start(build_large(SLEEP))
        monkeypatch.setattr(capacity, "HOPELESS_SECONDS", 0.0)
        with pytest.raises(NetworkExhaustedError, match="even idle nodes have too little capacity"):
            waiting.result()


@pytest.mark.nightly
def test_services_of_others_come_and_go_meanwhile(swarm_nodes: SwarmNodes, swarm_engine: SwarmEngine) -> None:
    ended, rounds = threading.Event(), 0

    def come_and_go() -> None:
        template = TaskTemplate(EngineContainerSpec("none"))
        with closing(swarm_nodes.manager.connect()) as api:
            while not ended.is_set():
                created = api.create_service(template, mode=ServiceMode("replicated", replicas=0))
                api.remove_service(created["ID"])

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(come_and_go)
        try:
            while rounds < 100 and not coming.done():
                with swarm_engine.reserve_capacity([build_spec("print(0)", cpus=None)], lambda: None):
                    rounds += 1
        finally:
            ended.set()
        coming.result()
    assert rounds == 100
