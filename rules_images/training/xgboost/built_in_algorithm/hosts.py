"""Distributed XGBoost: a job's hosts as workers, a tracker on the first.

Each host trains with its own rows.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xgboost
from xgboost import RabitTracker, collective

from rules_images.training.xgboost.built_in_algorithm.errors import JobError

_PORT = 9099
# Another host may start later. The attempts follow after 2, 4, 6 … seconds, a quarter of an hour in total.
_ATTEMPTS = 30
_SECONDS_TO_END = 60
# Options and tracker have other names and arguments there; the tracker's thread ends with its process.
_IS_BEFORE_2_1 = tuple(map(int, xgboost.__version__.split(".")[:2])) < (2, 1)


def choose_port() -> int:
    """Return the port at which the hosts find each other. They train at the next port.

    If the job has its own port, that is used, because the port of an ended tracker is not free at once.
    """
    return int(os.environ.get("MASTER_PORT") or _PORT)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that train one model.

    Attributes:
        names: names of all hosts, in the same order on every host.
        current: name of this host.
    """

    names: tuple[str, ...]
    current: str

    @property
    def first(self) -> str:
        """The host that runs the tracker and writes the files that are written only once."""
        return self.names[0]

    @property
    def is_first(self) -> bool:
        """Whether this host is the first."""
        return self.current == self.first


def read_hosts(base: Path) -> Hosts:
    """Return the hosts in the job's resourceconfig.json, or a single host if there is no such file."""
    path = base / "input" / "config" / "resourceconfig.json"
    if not path.is_file():
        return Hosts(("algo-1",), "algo-1")
    described = json.loads(path.read_text(encoding="utf-8"))
    return Hosts(tuple(sorted(described["hosts"])), described["current_host"])


@contextmanager
def join(hosts: Hosts, port: int) -> Iterator[None]:
    """Connect the hosts, so that XGBoost trains with the rows of all of them inside the context.

    Every host has to call this.

    Raises:
        xgboost.core.XGBoostError: a host cannot be reached, or ends before the others.
    """
    address = socket.gethostbyname(hosts.first)
    tracker = None
    if hosts.is_first:
        tracker = RabitTracker(n_workers=len(hosts.names), host_ip=address, port=port, sortby="task")
        tracker.start(*((len(hosts.names),) if _IS_BEFORE_2_1 else ()))
    named = {
        "tracker_uri": address,
        "tracker_port": port,
        # The tracker sorts workers by this id, so the first host is worker 0.
        "task_id": f"{hosts.names.index(hosts.current):04}",
    }
    options: dict[str, Any]
    if _IS_BEFORE_2_1:
        options = {f"DMLC_{name.upper()}": value for name, value in named.items()}
        options |= {"xgboost_communicator": "rabit", "DMLC_WORKER_CONNECT_RETRY": _ATTEMPTS}
    else:
        options = {f"dmlc_{name}": value for name, value in named.items()}
        options |= {"dmlc_communicator": "rabit", "dmlc_retry": _ATTEMPTS}
    worker = collective.CommunicatorContext(**options)
    # Suppress warnings about attempts before the tracker has started.
    with xgboost.config_context(verbosity=0):
        worker.__enter__()
    try:
        yield
    finally:
        worker.__exit__()
    if tracker is not None and not _IS_BEFORE_2_1:
        tracker.wait_for(_SECONDS_TO_END)


def exchange(own: Any) -> list[Any]:
    """Return the values that the connected hosts passed, in the order of the hosts."""
    own_rank = collective.get_rank()
    return [
        collective.broadcast(own if rank == own_rank else None, rank) for rank in range(collective.get_world_size())
    ]


def meet(hosts: Hosts, port: int, own: Any) -> tuple[Hosts, list[Any]]:
    """Tell the other hosts what this one has; return those that have something, and what each host has.

    Raises:
        JobError: no host has anything.
    """
    with join(hosts, port):
        found = exchange(own)
    if not any(found):
        raise JobError("No host of the job has data.")
    return Hosts(tuple(name for name, has in zip(hosts.names, found, strict=True) if has), hosts.current), found
