"""Tests of networks of hosts, and of isolation."""

import json
import socket
import uuid
from collections.abc import Callable

import pytest

from container_runtime.back_ends import Traits
from container_runtime.contract.programs import DEADLINE_SECONDS, python, run, start_and_await_line
from container_runtime.runtime import ContainerRuntime, ContainerRuntimeError, ContainerStartError, Exit, Network

# Says hello to each host of a network on one port that every one of them listens on; prints who has answered.
NEIGHBOUR = """
import http.server, json, os, sys, threading, time, urllib.request
own, others, port = os.environ["OWN"], json.loads(os.environ["OTHERS"]), int(os.environ["PORT"])
class Handler(http.server.BaseHTTPRequestHandler):
    asked = set()
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(own.encode())
        Handler.asked.add(self.path)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer((own, port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
deadline = time.monotonic() + 60
def ask(other):
    while True:
        try:
            return urllib.request.urlopen(f"http://{other}:{port}/{own}", timeout=20).read().decode()
        except OSError:
            assert time.monotonic() < deadline, f"{other} does not answer"
            time.sleep(0.05)
assert [ask(other) for other in others] == others
while len(Handler.asked) < len(others):
    assert time.monotonic() < deadline, f"only {Handler.asked} have asked"
    time.sleep(0.05)
print("met", flush=True)
"""


def name_network() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


def start_neighbours(runtime: ContainerRuntime, network: Network, source: str = NEIGHBOUR) -> list[str]:
    return [
        runtime.start(
            python(
                source,
                network=network.name,
                hostname=host,
                environment={
                    "OWN": own,
                    "OTHERS": json.dumps([each for each in network.addresses.values() if each != own]),
                    "PORT": str(network.rendezvous_port),
                },
            )
        )
        for host, own in network.addresses.items()
    ]


def test_an_isolated_container_has_no_network_but_itself(runtime: ContainerRuntime, traits: Traits) -> None:
    with socket.create_server((runtime.host_address, 0)) as server:
        source = f"""
import socket
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 5).close()
print([name for _, name in socket.if_nameindex() if name == "lo" or name.startswith("e")])
try:
    socket.create_connection({server.getsockname()!r}, 5)
except OSError as error:
    print("not reached")
"""
        try:
            ended = run(runtime, python(source, isolated=True))
        except ContainerStartError as error:
            if not traits.may_refuse_isolation:
                raise
            pytest.skip(str(error))
        assert ended == (Exit(0), [str([*traits.isolated_interfaces]), "not reached"])
        # The same source finds it where it is not isolated.
        taken: list[socket.socket] = []
        servers = {server.getsockname()[1]: taken.append}
        assert "not reached" not in run(runtime, python(source, servers=servers))[1]
        for each in taken:
            each.close()


def test_isolated_hosts_reach_each_other_only(runtime: ContainerRuntime, traits: Traits) -> None:
    name, hosts = f"test-{uuid.uuid4().hex[:12]}", ["algo-1", "algo-2"]
    try:
        network = runtime.create_network(name, hosts, {}, isolated=True)
    except ContainerStartError as error:
        if not traits.may_refuse_isolation:
            raise
        pytest.skip(str(error))
    with socket.create_server(("", 0)) as server:
        source = f"""
import socket, sys, threading
own, other = sys.argv[1:]
listening = socket.create_server((own, {network.rendezvous_port}))
threading.Thread(target=lambda: listening.accept()[0].sendall(own.encode())).start()
while True:
    try:
        connection = socket.create_connection((other, {network.rendezvous_port}), 5)
        break
    except OSError:
        pass
print("from", connection.recv(100).decode(), flush=True)
gateway = socket.gethostbyname(own).rpartition(".")[0] + ".1"
for address in ({runtime.host_address!r}, gateway if {traits.resolves_names} else "127.0.0.1"):
    try:
        socket.create_connection((address, {server.getsockname()[1]}), 5)
    except OSError:
        print("not reached")
"""
        containers = [
            runtime.start(
                python(
                    source,
                    command=(source, *(pair if traits.resolves_names else map(network.addresses.get, pair))),
                    hostname=pair[0],
                    network=network.name,
                    isolated=True,
                )
            )
            for pair in (hosts, hosts[::-1])
        ]
        lines = [[line.text for line in runtime.logs(container)] for container in containers]
    expected = hosts[::-1] if traits.resolves_names else [network.addresses[host] for host in hosts[::-1]]
    assert lines == [[f"from {other}", *["not reached"] * 2] for other in expected]
    for container in containers:
        runtime.remove(container)
    runtime.remove_network(name)
    assert name not in [each.name for each in runtime.find_networks({})]


def test_hosts_of_two_networks_meet_their_own_on_one_port(runtime: ContainerRuntime) -> None:
    hosts = ["algo-1", "algo-2"]
    networks = [runtime.create_network(name_network(), hosts, {}) for _ in range(2)]
    assert [list(network.addresses) for network in networks] == [hosts, hosts]
    containers = [container for network in networks for container in start_neighbours(runtime, network)]
    for container in containers:
        assert [line.text for line in runtime.logs(container)] == ["met"]
        assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)


def test_host_finds_the_others_before_they_run_and_after_their_end(runtime: ContainerRuntime, traits: Traits) -> None:
    if not traits.knows_hosts_early:
        pytest.skip("hosts wait for each other's names")
    network = runtime.create_network(name_network(), ["algo-1", "algo-2"], {})
    found = []
    for host in ("algo-1", "algo-2", "algo-1"):
        source = f"import socket; [print(socket.gethostbyname(each)) for each in {list(network.addresses.values())}]"
        ended, lines = run(runtime, python(source, network=network.name, hostname=host))
        assert ended == Exit(0), lines
        found.append(lines)
        for container in runtime.find({}):
            runtime.remove(container.id)
    assert len(set(found[0])) == 2
    assert found[1:] == [found[0]] * 2


def test_program_begins_when_the_names_of_all_hosts_are_known(runtime: ContainerRuntime, traits: Traits) -> None:
    """Also that of the first host, long before the last one runs."""
    hosts = ["algo-1", "algo-2"]
    network = runtime.create_network(name_network(), hosts, {})
    names = hosts if traits.resolves_names else list(network.addresses.values())
    source = f"import socket, time; print(*map(socket.gethostbyname, {names}), flush=True); time.sleep(60)"
    containers = [runtime.start(python(source, network=network.name, hostname=host)) for host in hosts]
    first, second = (next(runtime.logs(container)).text for container in containers)
    assert first == second
    assert len(set(first.split())) == 2


def test_host_of_a_network_reaches_the_servers_of_this_machine(runtime: ContainerRuntime) -> None:
    network = runtime.create_network(name_network(), ["algo-1"], {})
    with socket.create_server((runtime.host_address, 0)) as server:
        address = server.getsockname()
        source = f"import os, socket; socket.create_connection({address!r}, 60); print(os.listdir('/sys/class/net'))"
        taken: list[socket.socket] = []
        servers = {address[1]: taken.append}
        ended, lines = run(runtime, python(source, network=network.name, hostname="algo-1", servers=servers))
    assert ended == Exit(0), lines
    for each in taken:
        each.close()
    assert network.interface in lines[0]


def test_network_is_found_by_its_labels_and_given_back(make_runtime: Callable[[], ContainerRuntime]) -> None:
    old, name = make_runtime(), name_network()
    old.create_network(name, ["algo-1"], {"job": "one", "kind": "training"})
    new = make_runtime()
    (found,) = new.find_networks({"kind": "training"})
    assert (found.name, found.labels["job"]) == (name, "one")
    assert new.find_networks({"kind": "training", "job": "two"}) == []
    new.remove_network(name)
    new.remove_network(name)
    assert old.find_networks({}) == []


def test_network_with_a_container_on_it_stays(runtime: ContainerRuntime) -> None:
    network = runtime.create_network(name_network(), ["algo-1"], {})
    source = "import time; print('ready', flush=True); time.sleep(60)"
    container = start_and_await_line(runtime, source, network=network.name, hostname="algo-1")
    with pytest.raises(ContainerRuntimeError, match=network.name):
        runtime.remove_network(network.name)
    runtime.remove(container)
    runtime.remove_network(network.name)
    assert runtime.find_networks({}) == []


def test_network_name_that_is_taken(runtime: ContainerRuntime) -> None:
    name = name_network()
    runtime.create_network(name, ["algo-1"], {})
    with pytest.raises(ContainerRuntimeError, match=name):
        runtime.create_network(name, ["algo-1"], {})


def test_container_on_a_network_that_is_not_there(runtime: ContainerRuntime) -> None:
    name = name_network()
    with pytest.raises(ContainerStartError, match=name):
        runtime.start(python("pass", network=name, hostname="algo-1"))
    assert runtime.find({}) == []
