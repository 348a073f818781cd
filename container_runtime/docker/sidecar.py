"""Network sidecars: this process listens in a container's isolated network.

A sidecar is a small container whose only network is its loopback interface, or the network of its job's hosts. It
listens on the given ports and passes the listening sockets to this process through a Unix socket in a shared folder. A
socket belongs to the network namespace in which it was created, so this process directly accepts connections that are
made inside the container's network. The container itself then joins the sidecar's network. Nothing can be routed
between this network and any other address, and no packet filter is needed.

The sidecar keeps its sockets open as well. While this process is not running, clients wait; the next process fetches
the sockets again.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import docker
import docker.errors
from docker.types import Mount as EngineMount

from container_runtime.runtime import NETWORK_CLOSED, ContainerStartError, LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    Take = Callable[[socket.socket], None]

SIDECAR_LABEL = "smdebug-emulator.door"
"""Label of every sidecar; its value is the name of its container."""
LOOPBACK = "127.0.0.1"

_IMAGE = "smdebug-emulator/sagemaker-debugger-rules"
_FOLDER = "/sidecar"
_SOCKET = "socket"
_PROGRAM = f"""
import os, signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
listening = [socket.create_server(("{LOOPBACK}", int(port)), backlog=1024) for port in sys.argv[1:]]
sidecar = socket.socket(socket.AF_UNIX)
sidecar.bind("{_FOLDER}/new")
sidecar.listen()
os.rename("{_FOLDER}/new", "{_FOLDER}/{_SOCKET}")
while True:
    with sidecar.accept()[0] as asking:
        try:
            ports = asking.makefile().readline().split()
        except OSError:
            continue  # whoever asked is gone
        for port in ports:
            try:
                listening.append(socket.create_server(("{LOOPBACK}", int(port)), backlog=1024))
            except OSError:
                pass  # whoever asks misses it
        try:
            socket.send_fds(asking, [b"."], [each.fileno() for each in listening])
        except OSError:
            pass  # whoever asked is gone
"""
# Messages of the C library for failed name resolution and connections, and one of curl.
_SIGNS_OF_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|Could not resolve host"
)
_EXPLANATION = (
    f"{NETWORK_CLOSED}: it reaches the emulator and the other hosts of its job. Where it needs the internet, as pip "
    "does for a requirements.txt, start the emulator with --allow-internet, or with SMDEBUG_EMULATOR_ALLOW_INTERNET=1 "
    "in its environment; pytest takes --sagemaker-allow-internet."
)
# The reason for a failed job is taken from the last lines of its log, so the explanation is repeated there.
_REPEATED_AFTER = 10
_START_SECONDS = 60.0
_POLL_SECONDS = 0.01
_ANSWER_SECONDS = 10.0
_MOST_PORTS = 16
_MEMORY_BYTES = 64 * 1024**2


class Sidecars:
    """The sidecars of one back end's containers. Thread-safe.

    Args:
        api: client of the engine.
        folder: folder with one subfolder for each sidecar. Only the user of this process can open it.
        labels: labels of each sidecar.
    """

    def __init__(self, api: docker.APIClient, folder: Path, labels: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._api = api
        self._folder = folder
        self._labels = dict(labels)
        self._offered: dict[int, Take] = {}
        self._listening: dict[str, list[socket.socket]] = {}
        self._lock = threading.Lock()

    def offer(self, port: int, take: Take) -> None:
        """Open a port in the network of every sidecar to come."""
        self._offered[port] = take

    def take_over(self) -> None:
        """Pass the sockets of the sidecars of an earlier process, which listen on offered ports, to their servers."""
        for sidecar in self._list():
            if sidecar["State"] == "running":
                self._hand_over(sidecar["Labels"][SIDECAR_LABEL], self._offered)

    def create(self, name: str, ports: Mapping[int, Take], **options: Any) -> str:
        """Start a container's sidecar and return the network mode of the container.

        Args:
            name: name of the container.
            ports: ports to open in this network in addition to those of ``offer``.
            options: ``hostname``, ``network_mode``, ``extra_hosts``, ``dns``, ``dns_opt`` and
                ``networking_config``, as for a container.
        """
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)  # left by a sidecar that was killed during its start
        folder.mkdir(mode=0o700)
        host_config = self._api.create_host_config(
            network_mode=options.pop("network_mode"),
            extra_hosts=options.pop("extra_hosts"),
            dns=options.pop("dns"),
            dns_opt=options.pop("dns_opt"),
            mounts=[EngineMount(_FOLDER, str(folder), type="bind")],
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=True,
            mem_limit=_MEMORY_BYTES,
            pids_limit=8,
        )
        created = self._api.create_container(
            _IMAGE,
            name=_name_sidecar(name),
            entrypoint=["python", "-I", "-S", "-c"],
            command=[_PROGRAM, *map(str, {**self._offered, **ports})],
            labels={**self._labels, SIDECAR_LABEL: name},
            user=f"{os.getuid()}:{os.getgid()}",
            host_config=host_config,
            **options,
        )
        try:
            self._api.start(created["Id"])
        except BaseException:
            self.remove(created["Id"], name)
            raise
        return f"container:{created['Id']}"

    def wait(self, name: str, network_mode: str, ports: Mapping[int, Take]) -> None:
        """Wait until a sidecar listens, and pass its sockets to their servers.

        Raises:
            ContainerStartError: the sidecar has ended, or did not listen in time.
        """
        sidecar = network_mode.partition(":")[2]
        deadline = time.monotonic() + _START_SECONDS
        looks = 0
        while not (self._folder / name / _SOCKET).exists():
            looks += 1
            if looks % 100 == 0 and not self._api.inspect_container(sidecar)["State"]["Running"]:
                said = self._api.logs(sidecar).decode(errors="replace").strip()
                raise ContainerStartError(f"Container {name}: its network could not be made: {said}")
            if time.monotonic() > deadline:
                raise ContainerStartError(f"Container {name}: its network was not made within {_START_SECONDS:g} s.")
            time.sleep(_POLL_SECONDS)
        self._hand_over(name, {**self._offered, **ports})

    def open(self, name: str, ports: Mapping[int, Take]) -> None:
        """Open more ports in the network of a running sidecar, and pass their sockets to their servers.

        Raises:
            OSError: the sidecar has ended, or a port is in use.
        """
        if missing := ports.keys() - self._hand_over(name, ports, opened=ports):
            raise OSError(f"the sidecar of {name} did not open port {min(missing)}")

    def remove(self, sidecar: str, name: str) -> None:
        """Remove a container's sidecar, after the container was removed. Idempotent."""
        with self._lock:
            listening = self._listening.pop(name, [])
        for each in listening:
            with closing(each), suppress(OSError):  # the sidecar may have ended first
                # The server has a duplicate of this socket. The shutdown ends its accept() as well.
                each.shutdown(socket.SHUT_RDWR)
        with suppress(docker.errors.NotFound):
            self._api.remove_container(sidecar, force=True)
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def remove_of(self, name: str) -> None:
        """Remove the sidecar of a container that does not exist, if there is such a sidecar."""
        self.remove(_name_sidecar(name), name)

    def remove_unused(self) -> None:
        """Remove sidecars without a container: the emulator was killed before it created the container.

        This also removes sidecars that stayed when their container was removed.
        """
        containers = self._api.containers(all=True, filters=self._filters())
        used = {each["HostConfig"]["NetworkMode"] for each in containers}
        for sidecar in self._list():
            if f"container:{sidecar['Id']}" not in used:
                self.remove(sidecar["Id"], sidecar["Labels"][SIDECAR_LABEL])

    def close(self) -> None:
        """Remove sidecars without a container. The other containers wait at theirs for the next emulator process."""
        self.remove_unused()
        with self._lock:
            listening = [each for some in self._listening.values() for each in some]
            self._listening.clear()
        for each in listening:
            each.close()

    def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._api.containers(all=True, filters=self._filters(SIDECAR_LABEL))
        return found

    def _filters(self, *more: str) -> dict[str, list[str]]:
        return {"label": [*(f"{key}={value}" for key, value in self._labels.items()), *more]}

    def _hand_over(self, name: str, takers: Mapping[int, Take], opened: Iterable[int] = ()) -> set[int]:
        """Pass a sidecar's sockets to those who take them, and return their ports."""
        taken = set()
        for listening in fetch_sockets(self._folder / name, opened):
            port = listening.getsockname()[1]
            take = takers.get(port)
            if take is None:
                listening.close()
                continue
            taken.add(port)
            with self._lock:
                self._listening.setdefault(name, []).append(listening)
            take(listening.dup())
        return taken


def read_sidecar(container: Mapping[str, Any]) -> str | None:
    """Return a container's network mode if that is a sidecar, otherwise None."""
    mode: str = container["HostConfig"]["NetworkMode"]
    return mode if mode.startswith("container:") else None


def _name_sidecar(name: str) -> str:
    return f"{name}-sidecar"


def explain_network(lines: Iterator[LogLine]) -> Iterator[LogLine]:
    """Yield a container's log lines, with an explanation after the first line that reports a missing network.

    The explanation says why the network is missing and what to do. It is repeated at the end of the log if the end is
    more than a few lines after the first explanation.
    """
    for line in lines:
        yield line
        if _SIGNS_OF_NO_NETWORK.search(line.text):
            yield LogLine(line.timestamp_ms, _EXPLANATION)
            break
    number, last = 0, None
    for number, last in enumerate(lines, start=1):  # noqa: B007 - read after the loop
        yield last
    if last is not None and number > _REPEATED_AFTER:
        yield LogLine(last.timestamp_ms, _EXPLANATION)


def fetch_sockets(folder: Path, opened: Iterable[int] = ()) -> list[socket.socket]:
    """Fetch a sidecar's listening sockets, after it has opened more ports.

    Raises:
        OSError: the sidecar does not answer.
    """
    # The address of a Unix socket holds 107 bytes, and the path of the folder may be longer.
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_ANSWER_SECONDS)
            asking.connect(f"/proc/self/fd/{handle}/{_SOCKET}")
            # The sidecars of an earlier version answer at once, and read nothing.
            with suppress(BrokenPipeError):
                asking.sendall(f"{' '.join(map(str, opened))}\n".encode())
            _, handles, _, _ = socket.recv_fds(asking, 1, _MOST_PORTS)
    finally:
        os.close(handle)
    return [socket.socket(fileno=each) for each in handles]
