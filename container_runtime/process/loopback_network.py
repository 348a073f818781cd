"""Networks of local processes: loopback addresses and a port for each.

Linux answers on every address of 127.0.0.0/8 without any setup. So each host of a network has its own address, and the
processes of two hosts can listen on the same port if they bind it to their own address. Isolated hosts connect over the
loopback interface of a network namespace. A process holds this namespace as long as the network exists.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from container_runtime.file_lock import hold_lock
from container_runtime.runtime import (
    MAX_NETWORK_HOSTS,
    ContainerRuntimeError,
    FoundNetwork,
    Network,
    NetworkExhaustedError,
)

_INTERFACE = "lo"
_NAMESPACES = Path(__file__).with_name("namespaces.py")
# Second and third number of an address: 127.64.0.x to 127.254.255.x. Ranges are drawn at random, so those of two
# emulators on one machine rarely overlap. Those of one emulator never overlap.
_SECOND = range(64, 255)
_THIRD = range(256)
_DRAWS = 1000
# Below the ports of outgoing connections (from 32,768 by default), and above those that services commonly use.
_PORTS = range(20_000, 32_000)


class LoopbackNetworks:
    """The networks of one process back end.

    Args:
        folder: folder with one file for each network; created with the first network.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False) -> Network:
        """See ``ContainerRuntime.create_network``. For ``isolated`` the kernel has to grant network namespaces.

        Raises:
            NetworkExhaustedError, ContainerRuntimeError.
        """
        if len(hosts) > MAX_NETWORK_HOSTS:
            raise ContainerRuntimeError(f"The network {name} cannot hold {len(hosts)} hosts: {MAX_NETWORK_HOSTS} fit.")
        # The lock prevents that two threads, or this emulator and the next one, draw the same range.
        with hold_lock(self._folder / "lock"):
            if self._path(name).exists():
                raise ContainerRuntimeError(f"Network name {name!r} is taken; remove that network first.")
            taken = [record for _, record in self._read_records()]
            prefix = _draw_range({record["prefix"] for record in taken})
            port = draw_port({record["port"] for record in taken})
            record = {"prefix": prefix, "port": port, "labels": dict(labels)}
            if isolated:
                with start_holder() as record["holder"]:
                    self._write(name, record)
            else:
                self._write(name, record)
        addresses = {host: f"{prefix}.{number}" for number, host in enumerate(hosts, start=1)}
        return Network(name, addresses, _INTERFACE, port)

    def exists(self, name: str) -> bool:
        """Return whether the network exists."""
        return self._path(name).exists()

    def find_holder(self, name: str) -> int | None:
        """Return the pid of the process that holds the hosts' network namespace; None if they use the machine's.

        Raises:
            ContainerRuntimeError: that process was killed.
        """
        holder = json.loads(self._path(name).read_text(encoding="utf-8")).get("holder")
        if holder is None:
            return None
        if read_start_time(holder["pid"]) != holder["start_time"]:
            raise ContainerRuntimeError(
                f"The process {holder['pid']}, in whose network namespace the hosts of {name} meet, was killed."
            )
        return int(holder["pid"])

    def find(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        """Find the networks that have all of these labels."""
        return [
            FoundNetwork(name, record["labels"])
            for name, record in self._read_records()
            if labels.items() <= record["labels"].items()
        ]

    def _read_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read the name and record of each network."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # removed in the meantime
            yield path.name.removesuffix(".json"), record

    def remove(self, name: str) -> None:
        """See ``ContainerRuntime.remove_network``. The caller checks that no containers use the network."""
        try:
            holder = json.loads(self._path(name).read_text(encoding="utf-8")).get("holder")
        except FileNotFoundError:
            return
        if holder is not None:
            _end_holder(holder)
        self._path(name).unlink(missing_ok=True)

    def _write(self, name: str, record: dict[str, Any]) -> None:
        """Write a network's file, as a whole or not at all."""
        unfinished = self._folder / f"{name}.new"
        try:
            unfinished.write_text(json.dumps(record), encoding="utf-8")
            unfinished.replace(self._path(name))
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


@contextmanager
def start_holder() -> Iterator[dict[str, int]]:
    """Start a process that holds a network namespace and outlives this process.

    The context records the process, so that it is found again. Until its end, the process ends with this one, and if
    it raises an error.

    Yields:
        The ``pid`` of the process and its ``start_time``; see ``read_start_time``.

    Raises:
        ContainerRuntimeError: the kernel does not grant the namespace.
    """
    command = [sys.executable, "-I", "-S", str(_NAMESPACES)]
    pipe = subprocess.PIPE
    holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stderr is not None
    with holder.stdin, holder.stdout, holder.stderr:
        if holder.stdout.read() != b"ready":
            refusal = holder.stderr.read().decode(errors="replace").strip()
            holder.wait()
            raise ContainerRuntimeError(f"There is no network namespace for the hosts to meet in: {refusal}.")
        try:
            yield {"pid": holder.pid, "start_time": read_start_time(holder.pid) or 0}
        except BaseException:
            holder.kill()
            holder.wait()
            raise
        with suppress(BrokenPipeError):  # it was killed: the first host that is to join it says so
            os.write(holder.stdin.fileno(), b"recorded")
    holder.returncode = 0  # the emulator that removes the network ends the process and waits for it by its pid


def _end_holder(holder: Mapping[str, int]) -> None:
    """End and reap a process that holds a namespace. It may already have been killed."""
    pid = holder["pid"]
    if read_start_time(pid) == holder["start_time"]:
        os.kill(pid, signal.SIGKILL)
    elif read_start_time(pid, also_ended=True) != holder["start_time"]:
        return
    with suppress(ChildProcessError):  # an earlier emulator may have started it
        os.waitpid(pid, 0)


def read_start_time(pid: int, *, also_ended: bool = False) -> int | None:
    """Return when a process started, in clock ticks since the machine started; None if there is no such process.

    Args:
        pid: id of the process.
        also_ended: whether to include a process that has ended but is not reaped yet.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" and not also_ended else int(fields[18])


def _draw_range(taken: set[str]) -> str:
    for _ in range(_DRAWS):
        prefix = f"127.{secrets.choice(_SECOND)}.{secrets.choice(_THIRD)}"
        if prefix not in taken:
            return prefix
    raise NetworkExhaustedError(f"{len(taken)} networks hold loopback addresses: wait until some jobs have ended.")


def draw_port(taken: Collection[int] = ()) -> int:
    """Draw a free TCP port of this machine that is not in ``taken``.

    Args:
        taken: ports that are assigned, though nothing may listen on them yet.

    Raises:
        NetworkExhaustedError: no free port was found.
    """
    for _ in range(_DRAWS):
        port = secrets.choice(_PORTS)
        if port not in taken and _is_free(port):
            return port
    raise NetworkExhaustedError(
        f"No free TCP port was found from {_PORTS.start} to {_PORTS.stop - 1}: end processes that listen on them."
    )


def _is_free(port: int) -> bool:
    """Return whether a program can listen on the port on all addresses, as torch's store does."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
