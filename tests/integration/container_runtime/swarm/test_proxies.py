"""Tests of proxies into isolated networks.

A container reaches this process' ports, and nobody reaches the container's network without the key.
"""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from container_runtime.process.loopback_network import draw_port
from container_runtime.runtime import ContainerStartError
from container_runtime.swarm import agent
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.inside import pass_on
from container_runtime.swarm.proxies import Proxies
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("granted_namespaces")

# A network of its own, as a container has it: nothing but a loopback interface.
_CONTAINER = "ip link set lo up; echo ready; read line"
_ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60) as connection:
    connection.sendall(b"x" * 3_000_000)
    connection.sendall(b"end")
    print(connection.makefile("rb").read().decode())
"""


class NodeAgent:
    """An agent in this process, on a port of this machine."""

    def __init__(
        self, key: Path, volumes: Path, processes: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self.key = key
        self._processes, self._groups = processes, groups
        self.port = draw_port()  # which nobody else is given after its end
        self._volumes = os.open(volumes, os.O_RDONLY)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.start()

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()

    async def _serve(self) -> None:
        context = agent.build_context(ssl.PROTOCOL_TLS_SERVER, self.key)
        self._agent = agent.Agent(self._processes, self._groups, self._volumes)
        self._server = await asyncio.start_server(self._agent.answer, "127.0.0.1", self.port, ssl=context)

    def has(self, pid: int) -> bool:
        return self._agent._inside.has(pid)

    def end(self) -> None:
        """End as a process that is killed does: all its sockets are closed."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()

    async def _end(self) -> None:
        self._server.close()
        for pid in list(self._agent._inside._proxies):
            await self._agent._inside._close(pid)
        own = asyncio.current_task()
        others = [each for each in asyncio.all_tasks() if each is not own]
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def close(self) -> None:
        self.end()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        os.close(self._volumes)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeAgent]:
    made = NodeAgent(keep_key(tmp_path), tmp_path)
    yield made
    made.close()


@pytest.fixture
def proxies(node: NodeAgent) -> Iterator[Proxies]:
    made = Proxies(lambda _node: ("127.0.0.1", node.port), node.key)
    yield made
    made.shut()


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that reads up to an end, and says how much that was."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    size, last = 0, b""
                    while not last.endswith(b"end"):
                        last = last[-2:] + (data := connection.recv(1 << 16))
                        size += len(data)
                        if not data:
                            break
                    connection.sendall(b"got %d" % size)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def container() -> Iterator[subprocess.Popen[str]]:
    """A process in a network of its own."""
    command = ["unshare", "--net", "sh", "-c", _CONTAINER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def ask(container: subprocess.Popen[str], port: int) -> str:
    """Ask the server from within the container's network, while its own process waits."""
    command = ["nsenter", f"--net=/proc/{container.pid}/ns/net", sys.executable, "-ISc", _ASK, str(port)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_an_isolated_process_reaches_the_port_and_no_other(
    proxies: Proxies, node: NodeAgent, server: int, container: subprocess.Popen[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert "refused" in ask(container, server)
        proxies.open("one", "node", lambda: container.pid, [server])
        assert ask(container, server) == "got 3000003"
        assert "refused" in ask(container, other.getsockname()[1])
        assert node.has(container.pid)
        proxies.close("one")
        wait_until(lambda: not node.has(container.pid))
        assert "refused" in ask(container, server)


def test_many_are_inside_at_once(proxies: Proxies, server: int, container: subprocess.Popen[str]) -> None:
    proxies.open("one", "node", lambda: container.pid, [server])
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: ask(container, server), range(4))) == ["got 3000003"] * 4


def test_a_request_while_the_emulator_is_away_waits_for_the_next(
    proxies: Proxies, node: NodeAgent, server: int, container: subprocess.Popen[str]
) -> None:
    proxies.open("one", "node", lambda: container.pid, [server])
    proxies.shut()
    assert node.has(container.pid)
    command = ["nsenter", f"--net=/proc/{container.pid}/ns/net", sys.executable, "-ISc", _ASK, str(server)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
        table = f"/proc/{container.pid}/net/tcp"
        wait_until(lambda: f":{server:04X} 01 " in " ".join(_read_established(table)))
        next_one = Proxies(lambda _node: ("127.0.0.1", node.port), node.key)
        next_one.open("one", "node", lambda: container.pid, [server], wait=False)
        assert asking.communicate()[0].strip() == "got 3000003"
        next_one.shut()


def _read_established(table: str) -> list[str]:
    fields = [line.split() for line in Path(table).read_text().splitlines()[1:]]
    return [f":{each[2].partition(':')[2]} {each[3]} " for each in fields]


def test_proxy_opens_again_where_an_agent_was_lost(
    proxies: Proxies, node: NodeAgent, server: int, container: subprocess.Popen[str]
) -> None:
    proxies.open("one", "node", lambda: container.pid, [server])
    node.end()
    assert "refused" in ask(container, server)
    node.start()
    wait_until(lambda: node.has(container.pid))
    wait_until(lambda: ask(container, server) == "got 3000003")


def test_proxy_goes_with_its_container(
    proxies: Proxies, node: NodeAgent, server: int, container: subprocess.Popen[str]
) -> None:
    proxies.open("one", "node", lambda: container.pid, [server])
    container.kill()
    container.wait()
    wait_until(lambda: not node.has(container.pid))
    proxies.open("gone", "node", lambda: container.pid, [server])  # nobody is there any more who could miss it
    assert not node.has(container.pid)


def test_port_that_is_taken_inside_is_reported(proxies: Proxies, server: int, container: subprocess.Popen[str]) -> None:
    source = "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); print('on', flush=True); "
    command = ["nsenter", f"--net=/proc/{container.pid}/ns/net", sys.executable, "-ISc"]
    command += [source + "sys.stdin.read()", str(server)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as taker:
        assert taker.stdout is not None
        assert taker.stdin is not None
        assert taker.stdout.readline() == "on\n"
        with pytest.raises(ContainerStartError, match=r"refuses .*in use"):
            proxies.open("one", "node", lambda: container.pid, [server])
        taker.stdin.close()


def test_connections_that_are_cancelled_while_they_close_are_closed(tmp_path: Path) -> None:
    key = keep_key(tmp_path)
    silent = threading.Event()

    def take_and_be_silent(listening: socket.socket) -> None:
        context = agent.build_context(ssl.PROTOCOL_TLS_SERVER, key)
        with context.wrap_socket(listening.accept()[0], server_side=True):
            silent.wait()

    async def cancel(port: int) -> list[int]:
        """Cancel while the end of TLS is waited for; return the numbers of the two sockets afterwards."""
        context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, key, agent.PROXY)
        there = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        near, far = socket.socketpair()
        here = await asyncio.open_connection(sock=near)
        sockets = [writer.get_extra_info("socket") for _, writer in (there, here)]
        passing = asyncio.create_task(pass_on(there, here))
        far.close()
        while not there[1].is_closing():
            await asyncio.sleep(0)
        passing.cancel()
        await asyncio.wait([passing])
        await asyncio.sleep(0)
        return [each.fileno() for each in sockets]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=take_and_be_silent, args=(listening,))
        thread.start()
        try:
            assert asyncio.run(cancel(listening.getsockname()[1])) == [-1, -1]
        finally:
            silent.set()
            thread.join()


def test_agent_answers_nobody_with_another_key(node: NodeAgent, tmp_path: Path) -> None:
    other = keep_key(tmp_path / "other")
    context = agent.build_context(ssl.PROTOCOL_TLS_CLIENT, other, agent.PROXY)
    with pytest.raises(OSError, match="certificate"):
        context.wrap_socket(socket.create_connection(("127.0.0.1", node.port)))
    # Nor anybody who has none, and takes any.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = context.wrap_socket(socket.create_connection(("127.0.0.1", node.port)))
    answer = b""
    with connection, suppress(OSError):  # a refusal, or an end
        connection.sendall(b"open %d 80\n" % os.getpid())
        answer = connection.recv(100)
    assert answer == b""
