"""Tests of Swarm networks: what a container reaches, probed across two nodes."""

import errno
import json
import os
import re
import socket
import ssl
import uuid
from contextlib import closing, suppress
from operator import itemgetter
from pathlib import Path

import pytest

from container_runtime.spec import Mount
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.engine import SwarmEngine
from emulator.gateway.listener import Listener
from tests.contract.test_docker_networks import LISTEN, PROBE, UNREACHABLE, build_spec, probe
from tests.swarm_nodes import SwarmNodes

pytestmark = pytest.mark.docker
NOWHERE = {"timed out", UNREACHABLE, os.strerror(errno.EHOSTUNREACH)}
# Both begin when both are there.
FIND_ALGO_1 = """
import errno, socket, time
while (found := socket.socket().connect_ex(("algo-1", 7777))) == errno.ECONNREFUSED:
    time.sleep(0.05)
"""
METADATA = ("169.254.169.254", 80)


def list_ways(nodes: SwarmNodes, others: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """List what a container is not to reach: the nodes' Swarm and agents, and this machine's other servers."""
    with closing(nodes.manager.connect()) as api:
        tasks = [task for task in api.tasks() if task["Status"].get("PortStatus", {}).get("Ports")]
        addresses = {each["ID"]: each["Status"]["Addr"] for each in api.nodes()}
    agents = [(addresses[task["NodeID"]], task["Status"]["PortStatus"]["Ports"][0]["PublishedPort"]) for task in tasks]
    assert {address for address, _ in agents} == {node.address for node in nodes.nodes}
    return [METADATA, (nodes.manager.address, 2377), *agents, (nodes.address, others[0][1])]


def ask(address: tuple[str, int], key: Path | None) -> bytes:
    """Ask an agent for its engine's description; return the first bytes of its answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if key is not None:
        context.load_cert_chain(key)
    with (
        suppress(ssl.SSLError, ConnectionError),
        context.wrap_socket(socket.create_connection(address)) as connection,
    ):
        connection.sendall(b"GET /info HTTP/1.0\r\nHost: engine\r\n\r\n")
        return connection.recv(8)
    return b""


def test_a_container_on_a_node_reaches_the_server_that_it_is_offered_and_nothing_else(
    swarm_engine: SwarmEngine, kept_agents: SwarmNodes, server: Listener, others: list[tuple[str, int]]
) -> None:
    swarm_engine.offer(server.port, server.take)
    ways = list_ways(kept_agents, others)
    reached = probe(swarm_engine, [("127.0.0.1", server.port), *ways, ("127.0.0.1", others[0][1])])
    assert reached[0] == "reached"
    assert set(reached[1:-1]) == {UNREACHABLE}
    assert reached[-1] == "Connection refused", "its loopback interface is its own"
    reached = probe(swarm_engine, [*ways, ("127.0.0.1", server.port)], isolated=True)
    assert set(reached[:-1]) == {UNREACHABLE}
    assert reached[-1] == "Connection refused", "an isolated container has no proxy"


def test_hosts_on_two_nodes_reach_each_other_and_the_server_only(
    swarm_engine: SwarmEngine, kept_agents: SwarmNodes, server: Listener, others: list[tuple[str, int]]
) -> None:
    """Nor another job's host."""
    swarm_engine.offer(server.port, server.take)
    hosts = ["algo-1", "algo-2"]
    mine, theirs = (
        swarm_engine.create_network(f"test-{uuid.uuid4().hex[:12]}", each, {}).name for each in (hosts, hosts[:1])
    )
    neighbour = swarm_engine.start(build_spec(LISTEN, network=theirs, hostname="algo-1"))
    elsewhere = (next(swarm_engine.logs(neighbour)).text, 7777)
    # As large as a node: one fits on each.
    listening = swarm_engine.start(build_spec(LISTEN, network=mine, hostname="algo-1", cpus=1000))
    asked = [("127.0.0.1", server.port), ("algo-1", 7777), elsewhere, *list_ways(kept_agents, others)]
    asking = swarm_engine.start(
        build_spec(FIND_ALGO_1 + PROBE, json.dumps(asked), network=mine, hostname="algo-2", cpus=1000)
    )
    found = [line.text for line in swarm_engine.logs(asking) if not line.text.startswith("smdebug-emulator: ")]
    assert found[:2] == ["reached", "reached"]
    assert [answer in NOWHERE for answer in found[2:]] == [True] * len(asked[2:]), found
    with closing(kept_agents.manager.connect()) as api:
        tasks = [max(api.tasks({"service": each}), key=itemgetter("CreatedAt")) for each in (listening, asking)]
    assert len({task["NodeID"] for task in tasks}) == 2
    # A name that there is not: the engine would ask servers of its node's own.
    resolvers = [task["Spec"]["ContainerSpec"]["DNSConfig"]["Nameservers"] for task in tasks]
    assert resolvers == [["192.0.2.1"]] * 2


def test_a_container_on_a_node_finds_the_next_process_that_offers_the_port(
    swarm_engine: SwarmEngine, kept_agents: SwarmNodes, server: Listener, tmp_path: Path
) -> None:
    """While there is none it waits: the agent of its node holds the socket that it connects to."""
    first = SwarmEngine(swarm_engine.instance_id, kept_agents.folder / "key")
    first.offer(server.port, server.take)
    source = f"""
import os, socket, time
print("ready", flush=True)
while not os.path.exists("/go/on"):
    time.sleep(0.05)
connection = socket.create_connection(("127.0.0.1", {server.port}), 20)
connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
print("waits", flush=True)
print("reached" if connection.recv(100) else "closed", flush=True)
"""
    container = first.start(build_spec(source, mounts=(Mount(tmp_path, "/go"),)))
    lines = swarm_engine.logs(container)
    assert next(lines).text == "ready"
    first.close()
    (tmp_path / "on").touch()
    assert next(lines).text == "waits"
    assert [each.id for each in swarm_engine.find({})] == [container]
    swarm_engine.offer(server.port, server.take)
    assert next(lines).text == "reached"


def test_agents_answer_nobody_without_their_key(
    swarm_engine: SwarmEngine, kept_agents: SwarmNodes, tmp_path: Path, server: Listener, others: list[tuple[str, int]]
) -> None:
    """Neither who brings no key nor who brings another's; and nothing that a manager shows holds it."""
    swarm_engine.offer(server.port, server.take)
    agents = [way for way in list_ways(kept_agents, others) if way[1] > 30000 and way[0] != kept_agents.address]
    own = kept_agents.folder / "key" / "agent.pem"
    assert [ask(each, own) for each in agents] == [b"HTTP/1.0"] * 2
    assert [ask(each, key) for each in agents for key in (None, keep_key(tmp_path))] == [b""] * 4
    (secret,) = re.findall("PRIVATE KEY-----\n(.{40})", own.read_text())
    with closing(kept_agents.manager.connect()) as api:
        shown = json.dumps([api.services(), api.secrets(), api.configs(), api.tasks(), api.networks()])
    assert secret not in shown
    assert "agent.pem" in shown
