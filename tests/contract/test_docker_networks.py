"""Tests of Docker networks: what a container reaches, probed from within.

The servers that it must not reach really exist.
"""

import errno
import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.engine import INSTANCE_LABEL, DockerEngine
from container_runtime.docker.sidecar import SIDECAR_LABEL
from container_runtime.runtime import ContainerRuntime
from container_runtime.spec import ContainerSpec
from emulator.gateway.listener import Listener

pytestmark = pytest.mark.docker

IMAGE = "sagemaker-debugger-rules"
UNREACHABLE = os.strerror(errno.ENETUNREACH)
PROBE = """
import json, socket, sys
for host, port in json.loads(sys.argv[1]):
    try:
        with socket.create_connection((host, port), 2) as connection:
            connection.settimeout(20)
            connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            print("reached" if connection.recv(100) else "closed")
    except OSError as error:
        print(error.strerror or error)
"""
LISTEN = """
import socket
server = socket.create_server(("", 7777))
print(socket.gethostbyname(socket.gethostname()), flush=True)
while True:
    server.accept()[0].sendall(b"hello")
"""


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[Callable[..., DockerEngine]]:
    made: list[DockerEngine] = []

    def make(*, closed: bool, instance: str | None = None) -> DockerEngine:
        instance = instance or f"test-{uuid.uuid4().hex[:12]}"
        # As long a path as state folders have below a home.
        sidecars = tmp_path / ("a-folder-with-a-long-name" * 5) / instance if closed else None
        made.append(DockerEngine(instance, sidecars=sidecars))
        return made[-1]

    yield make
    for engine in made:
        for container in engine.find({}):
            engine.remove(container.id)
        for network in engine.find_networks({}):
            engine.remove_network(network.name)
        engine.close()
    instances = {engine._instance_id for engine in made}
    assert not [each for instance in instances for each in list_sidecars(instance)]


def build_spec(source: str, *arguments: str, **changes: Any) -> ContainerSpec:
    name = f"test-{uuid.uuid4().hex[:12]}"
    return ContainerSpec(name, IMAGE, entrypoint=("python", "-c"), command=(source, *arguments), **changes)


def probe(engine: ContainerRuntime, addresses: Sequence[tuple[str, int]], **changes: Any) -> list[str]:
    """Connect to each address from within a container."""
    container = engine.start(build_spec(PROBE, json.dumps(addresses), **changes))
    lines = [line.text for line in engine.logs(container)]
    engine.remove(container)
    return [line for line in lines if not line.startswith("smdebug-emulator: ")]


def list_sidecars(instance: str) -> list[dict[str, Any]]:
    api = connect()
    try:
        labels = [f"{INSTANCE_LABEL}={instance}", SIDECAR_LABEL]
        found: list[dict[str, Any]] = api.containers(all=True, filters={"label": labels})
        return found
    finally:
        api.close()


def test_a_container_reaches_the_server_that_it_is_offered_and_nothing_else(
    make_engine: Callable[..., DockerEngine], server: Listener, others: list[tuple[str, int]]
) -> None:
    """Nor this machine's other servers, the metadata address, another job's container or a network behind it."""
    closed, opened = make_engine(closed=True), make_engine(closed=False)
    closed.offer(server.port, server.take)
    neighbour = opened.start(build_spec(LISTEN))
    address = next(opened.logs(neighbour)).text
    elsewhere = [("169.254.169.254", 80), ("192.168.0.1", 80), ("10.0.0.1", 53), (address, 7777)]
    apart = [(each, port) for each, port in others if not each.startswith("127.")]
    reached = probe(closed, [("127.0.0.1", server.port), *elsewhere, *apart, ("127.0.0.1", others[0][1])])
    assert reached[0] == "reached"
    assert set(reached[1:-1]) == {UNREACHABLE}
    assert reached[-1] == "Connection refused", "its loopback interface is its own"

    # With a way to the internet the same probe finds what this machine serves, and still no container of another job.
    reached = probe(opened, [*apart, (address, 7777)])
    assert "reached" in reached[:-1]
    assert reached[-1] == "timed out"


def test_hosts_of_one_job_reach_each_other_and_the_server_only(
    make_engine: Callable[..., DockerEngine], server: Listener, others: list[tuple[str, int]]
) -> None:
    engine = make_engine(closed=True)
    engine.offer(server.port, server.take)
    networks = [engine.create_network(f"test-{uuid.uuid4().hex[:12]}", ["algo-1", "algo-2"], {}) for _ in range(2)]
    listening = [engine.start(build_spec(LISTEN, network=each.name, hostname="algo-1")) for each in networks]
    addresses = [next(engine.logs(each)).text for each in listening]
    assert addresses[0] != addresses[1]
    gateway = addresses[0].rpartition(".")[0] + ".1"
    elsewhere = [(addresses[1], 7777), ("169.254.169.254", 80), *((each, port) for each, port in others[1:3])]
    asked = [("127.0.0.1", server.port), ("algo-1", 7777), (gateway, others[0][1]), *elsewhere]
    found = probe(engine, asked, network=networks[0].name, hostname="algo-2")
    assert found[:2] == ["reached", "reached"]
    # No name is passed on: the engine's resolver would ask an address that nobody has.
    api = connect()
    asked_for_names = [
        api.inspect_container(each["Id"])["HostConfig"]["Dns"] for each in list_sidecars(engine._instance_id)
    ]
    api.close()
    assert asked_for_names == [["192.0.2.1"]] * 2
    # Its only way leads to an address that nobody has.
    nowhere = {"timed out", UNREACHABLE, os.strerror(errno.EHOSTUNREACH)}
    assert [answer in nowhere for answer in found[2:]] == [True] * len(asked[2:]), found


def test_a_container_finds_the_next_process_that_offers_the_port(
    make_engine: Callable[..., DockerEngine], server: Listener
) -> None:
    """While there is none it waits: its sidecar holds the socket that it connects to."""
    first = make_engine(closed=True)
    taken: list[socket.socket] = []
    first.offer(server.port, taken.append)
    container = first.start(
        build_spec("print('ready', flush=True)\n" + PROBE, json.dumps([("127.0.0.1", server.port)]))
    )
    lines = first.logs(container)
    assert next(lines).text == "ready"
    (entrance,) = taken
    entrance.close()  # as the kernel does when the process is killed
    second = make_engine(closed=True, instance=first._instance_id)
    assert [each.id for each in second.find({})] == [container], "a sidecar is not a container of a job's"
    second.offer(server.port, server.take)
    assert [line.text for line in lines] == ["reached"]


def test_a_sidecar_goes_with_its_container_and_where_there_is_none(
    make_engine: Callable[..., DockerEngine], server: Listener
) -> None:
    engine = make_engine(closed=True)
    entrances: list[socket.socket] = []
    engine.offer(server.port, entrances.append)
    container = engine.start(build_spec("import time; time.sleep(600)"))
    assert [each["Labels"][SIDECAR_LABEL] for each in list_sidecars(engine._instance_id)] == [engine.find({})[0].name]
    engine.remove(container)
    assert list_sidecars(engine._instance_id) == []
    with entrances[0] as entrance, pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        entrance.accept()

    # A start that was killed between the two: the next process finds a sidecar of nobody's.
    assert engine._sidecars is not None
    engine._sidecars.create(
        "nobody", {}, network_mode="none", extra_hosts=None, dns=None, dns_opt=None, hostname="nobody"
    )
    assert len(list_sidecars(engine._instance_id)) == 1
    make_engine(closed=True, instance=engine._instance_id).offer(server.port, server.take)
    assert list_sidecars(engine._instance_id) == []


def test_a_running_sidecar_opens_more_ports_and_misses_what_is_in_use(
    make_engine: Callable[..., DockerEngine],
) -> None:
    source = """
import socket, time
in_use = socket.create_server(("127.0.0.1", 7001))
print("ready", flush=True)
while True:
    try:
        with socket.create_connection(("127.0.0.1", 7000)) as connection:
            print(connection.makefile().readline(), end="")
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
"""
    engine = make_engine(closed=True)
    spec = build_spec(source)
    container = engine.start(spec)
    lines = engine.logs(container)
    assert next(lines).text == "ready"
    sidecars, entrances = engine._sidecars, list[socket.socket]()
    assert sidecars is not None
    with pytest.raises(OSError, match="did not open port 7001"):
        sidecars.open(spec.name, {7001: entrances.append})
    assert entrances == []
    sidecars.open(spec.name, {7000: entrances.append})
    with entrances[0] as entrance, entrance.accept()[0] as connection:
        connection.sendall(b"reached\n")
    assert [line.text for line in lines] == ["reached"]
    engine.remove(container)
    with pytest.raises(OSError, match="No such file"):
        sidecars.open(spec.name, {7002: entrances.append})


def test_a_log_that_misses_the_network_says_what_opens_it(make_engine: Callable[..., DockerEngine]) -> None:
    """Once, behind the first line: as of pip, which tries again and again."""
    source = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "pip", "install", "--retries", "1", "no-such-package-of-anybody"])
sys.exit(done.returncode)
"""
    engine = make_engine(closed=True)
    container = engine.start(build_spec(source))
    lines = [line.text for line in engine.logs(container)]
    assert len([line for line in lines if "--allow-internet" in line]) == 1, lines
    assert "name resolution" in lines[[("--allow-internet" in line) for line in lines].index(True) - 1]
    assert (ended := engine.wait(container)) is not None
    assert ended.code == 1
