"""Networks of local processes: loopback addresses and a port for each.

Linux answers on every address of 127.0.0.0/8 without any set-up, so each host of a network has an address of its own,
and the processes of two hosts may listen on the same port if they bind it on their own address. Hosts that are to reach
nothing else meet on the loopback interface of a network namespace, which a process holds for as long as there is the
network.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from container_runtime.file_lock import hold_lock
from container_runtime.runtime import (
    MAX_NETWORK_HOSTS,
    ContainerRuntimeError,
    FoundNetwork,
    Network,
    NetworkExhaustedError,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_INTERFACE = "lo"
_NAMESPACES = Path(__file__).with_name("namespaces.py")
# Second and third number of an address: 127.64.0.x to 127.254.255.x. Ranges are drawn at random, so that two emulators
# on one machine hardly ever meet; those of one emulator never do.
_SECOND = range(64, 255)
_THIRD = range(256)
_DRAWS = 1000
# Below what kernels give to outgoing connections (from 32,768 on), above what services commonly use.
_PORTS = range(20_000, 32_000)


class LoopbackNetworks:
    """The networks of one process back end.

    Args:
        folder: holds one file a network; made with the first of them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False) -> Network:
        """See ``ContainerRuntime.create_network``; the kernel has to grant network namespaces to ``isolated`` ones.

        Raises:
            NetworkExhaustedError, ContainerRuntimeError.
        """
        if len(hosts) > MAX_NETWORK_HOSTS:
            raise ContainerRuntimeError(f"The network {name} cannot hold {len(hosts)} hosts: {MAX_NETWORK_HOSTS} fit.")
        # Two threads, or an emulator and the one that comes after it, do not draw the same range.
        with hold_lock(self._folder / "lock"):
            if self._path(name).exists():
                raise ContainerRuntimeError(f"Network name {name!r} is taken; remove that network first.")
            taken = [json.loads(path.read_text(encoding="utf-8")) for path in self._folder.glob("*.json")]
            prefix = _draw_range({record["prefix"] for record in taken})
            port = draw_port({record["port"] for record in taken})
            record = {"prefix": prefix, "port": port, "labels": dict(labels)}
            if isolated:
                record["holder"] = start_holder()
            self._path(name).write_text(json.dumps(record), encoding="utf-8")
        addresses = {host: f"{prefix}.{number}" for number, host in enumerate(hosts, start=1)}
        return Network(name, addresses, _INTERFACE, port)

    def exists(self, name: str) -> bool:
        """Whether there is such a network."""
        return self._path(name).exists()

    def find_holder(self, name: str) -> int | None:
        """Find the process in whose network namespace the hosts meet; None where they meet on the machine's own.

        Raises:
            ContainerRuntimeError: it was killed.
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
        """See ``ContainerRuntime.find_networks``."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # removed meanwhile
            if labels.items() <= record["labels"].items():
                found.append(FoundNetwork(path.name.removesuffix(".json"), record["labels"]))
        return found

    def remove(self, name: str) -> None:
        """See ``ContainerRuntime.remove_network``; whether containers are on it is for the caller to know."""
        try:
            holder = json.loads(self._path(name).read_text(encoding="utf-8")).get("holder")
        except FileNotFoundError:
            return
        if holder is not None:
            _end_holder(holder)
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def start_holder() -> dict[str, int]:
    """Start a process that holds a network namespace, and outlives this one: its number and when it started.

    Raises:
        ContainerRuntimeError: the kernel does not grant the namespace.
    """
    command = [sys.executable, "-I", "-S", str(_NAMESPACES)]
    holder = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert holder.stdout is not None
    assert holder.stderr is not None
    with holder.stdout, holder.stderr:
        if holder.stdout.read() != b"ready":
            refusal = holder.stderr.read().decode(errors="replace").strip()
            holder.wait()
            raise ContainerRuntimeError(f"There is no network namespace for the hosts to meet in: {refusal}.")
    holder.returncode = 0  # it is ended and waited for by its number, by whichever emulator removes the network
    return {"pid": holder.pid, "start_time": read_start_time(holder.pid) or 0}


def _end_holder(holder: Mapping[str, int]) -> None:
    """Leave nothing of a process that held a namespace, not even what is left of one that was killed."""
    pid = holder["pid"]
    if read_start_time(pid) == holder["start_time"]:
        os.kill(pid, signal.SIGKILL)
    elif read_start_time(pid, also_ended=True) != holder["start_time"]:
        return
    with suppress(ChildProcessError):  # of an emulator that ran before this one
        os.waitpid(pid, 0)


def read_start_time(pid: int, *, also_ended: bool = False) -> int | None:
    """Read when a process started, in ticks since the machine did; None where there is no such process.

    Args:
        pid: its number.
        also_ended: read it of a process that has ended, too, and is not waited for yet.
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
    """Draw a free TCP port of this machine that is none of ``taken``, whose owners may not have started yet.

    Raises:
        NetworkExhaustedError: there is none.
    """
    for _ in range(_DRAWS):
        port = secrets.choice(_PORTS)
        if port not in taken and _is_free(port):
            return port
    raise NetworkExhaustedError(
        f"No free TCP port was found from {_PORTS.start} to {_PORTS.stop - 1}: end processes that listen on them."
    )


def _is_free(port: int) -> bool:
    """Whether a program could listen on the port on all addresses, as torch's store does."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
