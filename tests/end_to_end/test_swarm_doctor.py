"""Tests of ``doctor --runtime swarm`` on a manager, a worker and no Swarm."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from tests.end_to_end.swarm_jobs import set_availability
from tests.swarm_nodes import Node, SwarmNodes

pytestmark = pytest.mark.docker


def ask(folder: Path, node: Node | None) -> list[dict[str, str]]:
    """Return what the doctor finds of the Swarm that an engine is in; None for the machine's own engine."""
    environment = {} if node is None else {"DOCKER_HOST": f"unix://{node.socket}"}
    arguments = ["doctor", "--runtime", "swarm", "--json", "--state-dir", str(folder)]
    done = CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return [each for each in found if each["subject"] == "swarm"]


def list_left(manager: Node) -> set[str]:
    """Services, which other tests may have left running for theirs, and secrets."""
    with closing(manager.connect()) as api:
        return {str(each["ID"]) for each in (*api.services(), *api.secrets())}


def test_nodes_that_can_be_used_are_reported_and_nothing_is_left_on_them(
    swarm_nodes_with_rules: SwarmNodes, tmp_path: Path
) -> None:
    nodes = swarm_nodes_with_rules
    before = list_left(nodes.manager)
    findings = ask(tmp_path, nodes.manager)
    assert [each["state"] for each in findings] == ["ok", "ok"], findings
    assert [f"({node.address})" in each["found"] for node, each in zip(nodes.nodes, findings, strict=True)]
    assert list_left(nodes.manager) <= before


def test_a_node_that_gets_no_tasks_is_named(swarm_nodes_with_rules: SwarmNodes, tmp_path: Path) -> None:
    nodes = swarm_nodes_with_rules
    with closing(nodes.manager.connect()) as client:
        api: Any = client
        worker = next(each for each in api.nodes() if each["Status"]["Addr"] == nodes.nodes[1].address)
        set_availability(api, worker["ID"], "drain")
        try:
            findings = ask(tmp_path, nodes.manager)
        finally:
            set_availability(api, worker["ID"], "active")
    assert sorted(each["state"] for each in findings) == ["note", "ok"], findings
    assert any(nodes.nodes[1].address in each["found"] and each["state"] == "note" for each in findings)


def test_a_worker_is_not_a_manager(swarm_nodes_with_rules: SwarmNodes, tmp_path: Path) -> None:
    (finding,) = ask(tmp_path, swarm_nodes_with_rules.nodes[1])
    assert finding["state"] == "missing"
    assert "is a worker, and --runtime swarm needs a manager's" in finding["found"]


def test_an_engine_in_no_swarm_says_how_to_create_one(tmp_path: Path) -> None:
    (finding,) = ask(tmp_path, None)
    assert finding["state"] == "missing"
    assert "is in no Swarm" in finding["found"]
    assert "docker swarm init" in finding["found"]
