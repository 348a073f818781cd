"""Capacity of Swarm nodes: resources promised to containers and still free.

Swarm's own reservations are not used. With reservations, a manager that gets news of a node, as it does with each new
network, checks all tasks of the node, including those that ended long ago, and removes running tasks that no longer
fit. A Swarm never forgets the ended tasks of jobs. So the services here reserve nothing: a label has the resources that
they were promised, and a constraint their node.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import docker
import docker.errors

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.runtime import ContainerRuntimeError, NetworkExhaustedError
from container_runtime.spec import ContainerSpec
from container_runtime.swarm.nodes import SwarmNode
from container_runtime.swarm.reservations import Reservations

PROMISE_LABEL = "smdebug-emulator.promised"
"""Label of a service: see ``Promise.write``."""
# Percentage of the largest node that is promised at most, even if the job's instance type is larger. Two such
# containers never share a node, and small containers still fit on it.
_MOST = 75
HOPELESS_SECONDS = 120.0
"""Most time to wait for larger nodes, if the present ones could not run the containers even when idle."""
_NODE_POLL_SECONDS = 0.5
_CHOICE_SECONDS, _POLL_SECONDS = 10.0, 0.02
# A task in such a state uses no capacity, and never will.
_ENDED = {"complete", "shutdown", "failed", "rejected", "remove", "orphaned"}


class Promise(NamedTuple):
    """Resources that a container is promised.

    Attributes:
        nano_cpus: billionths of a CPU.
        memory_bytes: bytes of memory.
    """

    nano_cpus: int
    memory_bytes: int

    def write(self) -> str:
        """Return the promise as a label's value, which ``read`` parses."""
        return f"{self.nano_cpus} {self.memory_bytes}"

    @classmethod
    def read(cls, text: str) -> Promise:
        """Return what ``write`` has written."""
        return cls(*map(int, text.split()))

    def is_within(self, other: Promise) -> bool:
        """Return whether no resource exceeds that of another promise."""
        return self.nano_cpus <= other.nano_cpus and self.memory_bytes <= other.memory_bytes


def build_promise(spec: ContainerSpec, nodes: Collection[SwarmNode]) -> Promise:
    """Return the resources of a container's instance type, limited to most of the largest node."""
    cpus, memory_bytes = spec.cpus or 0, spec.memory_bytes or 0
    return Promise(
        min(10**9 * cpus, 10**7 * _MOST * max(each.cpus for each in nodes)),
        min(memory_bytes, _MOST * max(each.memory_bytes for each in nodes) // 100),
    )


def read_promise(service: Mapping[str, Any]) -> Promise:
    """Return the promise of each task of a service: the label, or what other services reserve."""
    label = service["Labels"].get(PROMISE_LABEL)
    if label is not None:
        return Promise.read(label)
    reserved = service["TaskTemplate"].get("Resources", {}).get("Reservations", {})
    return Promise(reserved.get("NanoCPUs", 0), reserved.get("MemoryBytes", 0))


def describe_lack(full: int, nodes: int, containers: int) -> str:
    """Return why containers wait.

    Args:
        full: how many of the nodes have no capacity for the first container.
        nodes: how many nodes can run them.
        containers: how many have to start at once.

    >>> describe_lack(1, 3, 1), describe_lack(2, 3, 1)
    ('1 of 3 nodes has too little free capacity', '2 of 3 nodes have too little free capacity')
    >>> describe_lack(1, 1, 1)
    'the only node has too little free capacity'
    >>> describe_lack(0, 1, 2)
    '1 node has too little free capacity for 2 containers at once'
    """
    if containers > 1:
        have = "node has" if nodes == 1 else "nodes have"
        return f"{nodes} {have} too little free capacity for {containers} containers at once"
    if nodes == 1:
        return "the only node has too little free capacity"
    return f"{full} of {nodes} nodes {'has' if full == 1 else 'have'} too little free capacity"


@dataclass(frozen=True, eq=False, slots=True)
class Wanted:
    """A container that needs a node.

    Attributes:
        name: name of the container.
        promise: resources that it needs.
        list_nodes: function that returns the nodes that can run it now.
    """

    name: str
    promise: Promise
    list_nodes: Callable[[], Collection[SwarmNode]]


class _Taken:
    """Resources promised on each node, and the number of containers, by node id."""

    def __init__(self) -> None:
        self._nano_cpus, self._memory_bytes = Counter[str](), Counter[str]()
        self._containers = Counter[str]()

    def add(self, node: str, promise: Promise) -> None:
        self._nano_cpus[node] += promise.nano_cpus
        self._memory_bytes[node] += promise.memory_bytes
        self._containers[node] += 1

    def leaves(self, node: SwarmNode, promise: Promise) -> bool:
        """Return whether a node has enough free capacity for a promise."""
        return (
            self._nano_cpus[node.id] + promise.nano_cpus <= node.cpus * 10**9
            and self._memory_bytes[node.id] + promise.memory_bytes <= node.memory_bytes
        )

    def weigh(self, node: SwarmNode) -> tuple[int, int]:
        """Return a sort key: free CPUs, then few containers."""
        return node.cpus * 10**9 - self._nano_cpus[node.id], -self._containers[node.id]

    def choose(self, lists: Mapping[Wanted, Collection[SwarmNode]]) -> dict[Wanted, SwarmNode] | None:
        """Choose a node with enough free capacity for each container; return None if one does not fit.

        The largest container is placed first. Of several nodes, the one with the most free CPUs is chosen, then the
        one with the fewest containers, so that all nodes fill evenly.
        """
        then, chosen = deepcopy(self), {}
        for each in sorted(lists, key=attrgetter("promise"), reverse=True):
            fitting = [node for node in lists[each] if then.leaves(node, each.promise)]
            if not fitting:
                return None
            node = max(fitting, key=then.weigh)
            then.add(node.id, each.promise)
            chosen[each] = node
        return chosen


@dataclass(eq=False, slots=True)
class _Turn:
    """Containers that wait for capacity together.

    Attributes:
        wanted: the containers, which start together or not at all.
        hopeless_since: time since which they would not fit even on idle nodes; None if they would.
        reservation: id of their reservation that all emulators of the Swarm see.
    """

    wanted: Sequence[Wanted]
    hopeless_since: float | None = None
    reservation: str | None = None

    @property
    def names(self) -> str:
        return ", ".join(each.name for each in self.wanted)

    def comes_before(self, younger: _Turn) -> bool:
        """Return whether a later request has to wait, because one of its containers is as large as one of these."""
        return self.hopeless_since is None and any(
            mine.promise.is_within(its.promise) for mine in self.wanted for its in younger.wanted
        )


class Capacity:
    """Assigns containers to nodes with enough free capacity. Thread-safe.

    Containers that are requested together are placed together or not at all. A request waits for earlier requests that
    are as large or smaller. Smaller requests are placed in the meantime.
    """

    def __init__(self, api: docker.APIClient, instance_id: str) -> None:
        """Start without reservations, with the client of a manager's engine and the id of this emulator."""
        self._api = api
        self._shared = Reservations(api, instance_id)
        with translated("end reservations of an earlier process"):
            self._shared.withdraw_all()
        self._lock = threading.Lock()
        # Chosen node and promise by container, until its service has a task there.
        self._kept: dict[str, tuple[SwarmNode, Promise]] = {}
        # Oldest first.
        self._queue: list[_Turn] = []
        self.waiting: dict[str, str] = {}
        """The reason why a container waits, by its name."""

    @contextmanager
    def keep(self, wanted: Sequence[Wanted], check: Callable[[], None]) -> Iterator[None]:
        """Wait until all of these containers fit at once, and reserve the capacity within the context.

        Args:
            wanted: the containers.
            check: called periodically. An exception that it raises ends the wait.

        Raises:
            NetworkExhaustedError: the containers did not fit even on idle nodes for two minutes.
        """
        turn = _Turn(wanted)
        with self._lock:
            self._queue.append(turn)
        try:
            while (why := self._try_to_keep(turn)) is not None:
                self.waiting |= {each.name: why for each in wanted}
                check()
                if turn.hopeless_since is not None and time.monotonic() - turn.hopeless_since > HOPELESS_SECONDS:
                    raise NetworkExhaustedError(
                        f"No node of the Swarm has started {turn.names} within {HOPELESS_SECONDS:g} s: {why}, and "
                        "even idle nodes have too little capacity."
                    )
                time.sleep(_NODE_POLL_SECONDS)
            self._leave(turn)
            yield
        finally:
            self._leave(turn)
            self._give_back(turn)

    def is_kept(self, container: str) -> bool:
        """Return whether capacity is reserved for a container."""
        with self._lock:
            return container in self._kept

    def create(self, container: str, service: dict[str, Any]) -> bool:
        """Create the service of a container on its reserved node, and end the reservation.

        Returns:
            False if the Swarm gives this node no more tasks. Then no service is created.

        Raises:
            docker.errors.APIError: the engine refuses the service.
        """
        node, _ = self._kept[container]
        service["TaskTemplate"]["Placement"] = {"Constraints": [f"node.id=={node.id}"]}
        try:
            raise_for_status(
                self._api.post(build_url(self._api, "/services/create"), json=service, timeout=REQUEST_SECONDS)
            )
            given = False
            try:
                given = self._await_choice(service["Name"])
            finally:
                if not given:
                    self._api.remove_service(service["Name"])
            return given
        finally:
            with self._lock:
                self._kept.pop(container)

    def _leave(self, turn: _Turn) -> None:
        with self._lock, suppress(ValueError):
            self._queue.remove(turn)
        for each in turn.wanted:
            self.waiting.pop(each.name, None)

    def _try_to_keep(self, turn: _Turn) -> str | None:
        """Reserve nodes for all containers of a request. Return the reason if that is not possible yet."""
        with self._lock:
            for older in self._queue[: self._queue.index(turn)]:
                if older.comes_before(turn):
                    return f"{older.names} waits longer for as much, or for less"
        # Outside of the lock, because an image may have to be copied to a node.
        lists = {each: each.list_nodes() for each in turn.wanted}
        with self._lock:
            taken = self._find_taken()
            chosen = taken.choose(lists)
            if chosen is not None:
                self._kept |= {each.name: (node, each.promise) for each, node in chosen.items()}
        if chosen is not None:
            return self._share(turn, chosen)
        if _Taken().choose(lists) is not None:
            turn.hopeless_since = None
        elif turn.hopeless_since is None:
            turn.hopeless_since = time.monotonic()
        nodes = {node.id: node for found in lists.values() for node in found}
        full = sum(not taken.leaves(node, turn.wanted[0].promise) for node in nodes.values())
        return describe_lack(full, len(nodes), len(turn.wanted))

    def _share(self, turn: _Turn, chosen: Mapping[Wanted, SwarmNode]) -> str | None:
        """Reserve the chosen nodes for all emulators to see; return the reason if another one was first."""
        with translated("reserve nodes of the Swarm"):
            turn.reservation = self._shared.publish((node.id, each.promise.write()) for each, node in chosen.items())
        with self._lock:
            taken = self._find_taken(turn)
        if taken.choose({each: [node] for each, node in chosen.items()}) is not None:
            return None
        self._give_back(turn)
        return "another emulator has reserved the nodes first"

    def _give_back(self, turn: _Turn) -> None:
        """End what a request has reserved, here and for all emulators. Idempotent."""
        with self._lock:
            for each in turn.wanted:
                self._kept.pop(each.name, None)
        reservation, turn.reservation = turn.reservation, None
        if reservation is not None:
            # If no manager answers, it ends by itself.
            with suppress(ContainerRuntimeError), translated("end a reservation of nodes of the Swarm"):
                self._shared.withdraw(reservation)

    def _find_taken(self, turn: _Turn | None = None) -> _Taken:
        """Return all promised resources. The caller holds the lock.

        Args:
            turn: a request that has reserved nodes: its own do not count, nor what others have reserved after it.
        """
        taken = _Taken()
        own = {each.name for each in turn.wanted} if turn is not None else set()
        for name, (node, promise) in self._kept.items():
            if name not in own:
                taken.add(node.id, promise)
        with translated("look what the nodes of the Swarm have left"):
            # Reservations first: one that is gone by then is a service that is listed.
            for node_id, text in self._shared.list_others(turn.reservation if turn is not None else None):
                taken.add(node_id, Promise.read(text))
            promised, tasks = self._list_promised()
        for task in tasks:
            if task["Status"]["State"] not in _ENDED and task["ServiceID"] in promised:
                taken.add(task.get("NodeID", ""), promised[task["ServiceID"]])
        return taken

    def _list_promised(self) -> tuple[dict[str, Promise], list[dict[str, Any]]]:
        """Return the promises of all services by service id, and the tasks of these services."""
        while True:
            promised = {each["ID"]: read_promise(each["Spec"]) for each in self._api.services()}
            try:
                # Only tasks of these services: the tasks of removed services stay forever.
                return promised, self._api.tasks(filters={"service": list(promised)}) if promised else []
            except docker.errors.NotFound:
                continue  # a service was removed in between

    def _await_choice(self, service: str) -> bool:
        """Wait until the Swarm has assigned a service's task to its node; return False if it refuses."""
        deadline = time.monotonic() + _CHOICE_SECONDS
        while time.monotonic() < deadline:
            for task in self._api.tasks(filters={"service": service}):
                if task.get("NodeID"):
                    return True
                if task["Status"].get("Err"):
                    return False
            time.sleep(_POLL_SECONDS)
        return False
