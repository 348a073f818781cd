"""Tests of the health check of Swarm nodes."""

import socket
from typing import Any

import pytest

from container_runtime.swarm.survey import Finding, describe_absent_agent, judge, look_from_here

OWN = {"Architecture": "x86_64"}


def describe(address: str = "127.0.0.1", state: str = "ready", availability: str = "active") -> dict[str, Any]:
    return {
        "ID": "n1",
        "Spec": {"Availability": availability},
        "Status": {"State": state, "Addr": address},
        "Description": {"Hostname": "tall", "Platform": {"Architecture": "x86_64"}},
    }


def look(node: dict[str, Any], *, alone: bool = False) -> Finding:
    finding = look_from_here(node, OWN, alone=alone)
    assert finding is not None
    return finding


def test_a_node_that_accepts_no_tasks_is_reported() -> None:
    down = look(describe(state="down"))
    assert down.state == "note"
    assert "tall (127.0.0.1) is down" in down.found
    drained = look(describe(availability="drain"))
    assert drained.state == "note"
    assert drained.remedy == "docker node update --availability active n1"


def test_a_node_of_another_architecture_runs_nothing_of_ours() -> None:
    node = describe()
    node["Description"]["Platform"]["Architecture"] = "aarch64"
    assert look(node, alone=True).state == "missing"
    assert "aarch64, and the images are of x86_64" in look(node).found


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", ""])
def test_an_address_that_only_its_own_machine_reaches_is_found(address: str) -> None:
    assert "no other machine reaches" in look(describe(address)).found
    assert look_from_here(describe(address), OWN, alone=True) is None


def test_a_node_that_does_not_answer_is_found(refusing_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does is not: its port is open."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        monkeypatch.setattr("container_runtime.swarm.survey._GOSSIP_PORT", address[1])
        monkeypatch.setattr("container_runtime.swarm.survey._is_only_here", lambda _address: False)
        assert look_from_here(describe(), OWN, alone=False) is None
    monkeypatch.setattr("container_runtime.swarm.survey._GOSSIP_PORT", refusing_port)
    closed = look(describe())
    assert closed.state == "missing"
    assert "Connection refused" in closed.found
    assert "7946" in closed.remedy


@pytest.mark.parametrize(
    ("apart", "free", "lacking", "state", "text"),
    [
        (0.1, 10**10, 10**9, "ok", "10.0 GB are free on node tall, and it lacks images of 1.0 GB"),
        (-20.0, 10**10, 0, "note", "-20.0 s off"),
        (1000.0, 10**10, 0, "missing", "+1,000 s off"),
        (0.0, 10**9, 10**9, "missing", "the images that it lacks take 1.0 GB"),
    ],
)
def test_clock_and_disk_are_judged(apart: float, free: int, lacking: int, state: str, text: str) -> None:
    finding = judge("tall", apart, free, lacking)
    assert finding.state == state
    assert text in finding.found
    assert (finding.remedy == "") == (state == "ok")


def test_a_ready_node_without_the_agents_image_is_named_with_the_command() -> None:
    finding = describe_absent_agent(describe("10.0.0.2"), "No such image: sha256:12", "sha256:12")
    assert finding.state == "missing"
    assert finding.found == "node tall (10.0.0.2) has no agent and gets no tasks: No such image: sha256:12"
    assert finding.remedy.startswith("docker save sha256:12 | ssh NODE docker load")
    assert describe_absent_agent(describe(), "", "sha256:12").found.endswith("it has not started")
