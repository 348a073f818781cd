"""Capacity of Swarm nodes: resources promised to containers and still free.

Swarm's own reservations would do that, but for one thing: with them, a manager that hears something new of a node, as
it does with each new network, goes through all tasks of the node, those that have ended long ago included, and takes
away what it finds no room for, running or not. The ended tasks of jobs are never forgotten. So our services reserve
nothing, have what they are promised in a label, and are told their node.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import docker
import docker.errors

from container_runtime.docker.border import build_url, raise_for_status, translated
from container_runtime.runtime import NetworkExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from container_runtime.spec import ContainerSpec
    from container_runtime.swarm.nodes import SwarmNode

PROMISE_LABEL = "smdebug-emulator.promised"
"""On a service: see ``Promise.write``."""
# Percent of the largest node, which has to do for a machine that no node is as large as: two of these never share a
# node, and what is small still fits beside one.
_MOST = 75
HOPELESS_SECONDS = 120.0
"""So long may nodes take to come, or to come back, for what those that are there could not run at any time."""
_NODE_POLL_SECONDS = 0.5
_CHOICE_SECONDS, _POLL_SECONDS = 10.0, 0.02
# A task in such a state takes no room, or never will.
_ENDED = {"complete", "shutdown", "failed", "rejected", "remove", "orphaned"}


class Promise(NamedTuple):
    """What a container may count on.

    Attributes:
        nano_cpus: billionths of a processor.
        memory_bytes: of memory.
    """

    nano_cpus: int
    memory_bytes: int

    def write(self) -> str:
        """Return it as a label's value; ``read_promise`` reads it."""
        return f"{self.nano_cpus} {self.memory_bytes}"

    def is_within(self, other: Promise) -> bool:
        """Whether it is no larger than another in anything."""
        return self.nano_cpus <= other.nano_cpus and self.memory_bytes <= other.memory_bytes


def build_promise(spec: ContainerSpec, nodes: Collection[SwarmNode]) -> Promise:
    """Build what a container is promised: what its machine has, but never more than most of the largest node."""
    cpus, memory_bytes = spec.cpus or 0, spec.memory_bytes or 0
    return Promise(
        min(10**9 * cpus, 10**7 * _MOST * max(each.cpus for each in nodes)),
        min(memory_bytes, _MOST * max(each.memory_bytes for each in nodes) // 100),
    )


def read_promise(service: Mapping[str, Any]) -> Promise:
    """Read what a service's tasks are promised, each: of ours by the label, of others by what they reserve."""
    label = service["Labels"].get(PROMISE_LABEL)
    if label is not None:
        return Promise(*map(int, label.split()))
    reserved = service["TaskTemplate"].get("Resources", {}).get("Reservations", {})
    return Promise(reserved.get("NanoCPUs", 0), reserved.get("MemoryBytes", 0))


@dataclass(frozen=True, eq=False, slots=True)
class Wanted:
    """A container that is to have a node.

    Attributes:
        name: of the container.
        promise: that its node has to keep.
        list_nodes: lists the nodes that can run it, anew at each look.
    """

    name: str
    promise: Promise
    list_nodes: Callable[[], Collection[SwarmNode]]


class _Taken:
    """What is promised on each node, and to how many containers, by the node's id."""

    def __init__(self) -> None:
        self._nano_cpus, self._memory_bytes = Counter[str](), Counter[str]()
        self._containers = Counter[str]()

    def add(self, node: str, promise: Promise) -> None:
        self._nano_cpus[node] += promise.nano_cpus
        self._memory_bytes[node] += promise.memory_bytes
        self._containers[node] += 1

    def leaves(self, node: SwarmNode, promise: Promise) -> bool:
        """Whether a node has room for one more."""
        return (
            self._nano_cpus[node.id] + promise.nano_cpus <= node.cpus * 10**9
            and self._memory_bytes[node.id] + promise.memory_bytes <= node.memory_bytes
        )

    def weigh(self, node: SwarmNode) -> tuple[int, int]:
        """Weigh what is free of a node."""
        return node.cpus * 10**9 - self._nano_cpus[node.id], -self._containers[node.id]

    def choose(self, lists: Mapping[Wanted, Collection[SwarmNode]]) -> dict[Wanted, SwarmNode] | None:
        """Choose for each a node that has room for it, the largest first; None where one finds none.

        Of several it is that with the most processors left, then with the fewest containers, so that all fill evenly.
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
    """Who waits.

    Attributes:
        wanted: what has to have room at once.
        hopeless_since: since when the nodes, without all that runs on them, have no room for it; None where they have.
    """

    wanted: Sequence[Wanted]
    hopeless_since: float | None = None

    @property
    def names(self) -> str:
        return ", ".join(each.name for each in self.wanted)

    def comes_before(self, younger: _Turn) -> bool:
        """Whether another, which came later, has to wait for this: it asks for as much as one of these, or for more."""
        return self.hopeless_since is None and any(
            mine.promise.is_within(its.promise) for mine in self.wanted for its in younger.wanted
        )


class Capacity:
    """Gives containers to nodes that have room for them. Thread safe.

    Who waits for several nodes gets all of them at once, or none. Who asks for as much as another who waits longer, or
    for more, comes after that one; what is smaller finds its room meanwhile.
    """

    def __init__(self, api: docker.APIClient) -> None:
        """Take the manager's engine."""
        self._api = api
        self._lock = threading.Lock()
        # What was chosen, by container, until its service has a task there.
        self._kept: dict[str, tuple[SwarmNode, Promise]] = {}
        # The oldest first.
        self._queue: list[_Turn] = []
        self.waiting: dict[str, str] = {}
        """Why a container waits, by its name."""

    @contextmanager
    def keep(self, wanted: Sequence[Wanted], check: Callable[[], None]) -> Iterator[None]:
        """Wait until there is room for all of these containers at once; keep it for them within the context.

        Args:
            wanted: what has to have room.
            check: called now and then; what it raises ends the wait.

        Raises:
            NetworkExhaustedError: the nodes would have no room for them if they ran nothing, for two minutes.
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
            with self._lock:
                for each in wanted:
                    self._kept.pop(each.name, None)

    def is_kept(self, container: str) -> bool:
        """Whether there is room that is kept for a container."""
        with self._lock:
            return container in self._kept

    def create(self, container: str, service: dict[str, Any]) -> bool:
        """Create the service of a container on the node that is kept for it; the node is so kept no longer.

        False, with nothing created, where the Swarm gives this node no task any more.

        Raises:
            docker.errors.APIError: the engine refuses the service.
        """
        node, _ = self._kept[container]
        service["TaskTemplate"]["Placement"] = {"Constraints": [f"node.id=={node.id}"]}
        try:
            raise_for_status(self._api.post(build_url(self._api, "/services/create"), json=service))
            try:
                given = self._await_choice(service["Name"])
            except BaseException:
                self._api.remove_service(service["Name"])
                raise
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
        """Choose nodes for all, where there is room for them and nobody comes before; else say why not."""
        with self._lock:
            for older in self._queue[: self._queue.index(turn)]:
                if older.comes_before(turn):
                    return f"{older.names} waits longer for as much, or for less"
        # Outside of the lock: an image may have to be brought to a node.
        lists = {each: each.list_nodes() for each in turn.wanted}
        with self._lock:
            taken = self._find_taken()
            chosen = taken.choose(lists)
            if chosen is not None:
                self._kept |= {each.name: (node, each.promise) for each, node in chosen.items()}
                return None
        if _Taken().choose(lists) is not None:
            turn.hopeless_since = None
        elif turn.hopeless_since is None:
            turn.hopeless_since = time.monotonic()
        nodes = {node.id: node for found in lists.values() for node in found}
        if len(turn.wanted) > 1:
            have = "node has" if len(nodes) == 1 else "nodes have"
            return f"{len(nodes)} {have} too little free capacity for {len(turn.wanted)} containers at once"
        full = [node for node in nodes.values() if not taken.leaves(node, turn.wanted[0].promise)]
        return f"{len(full)} of {len(nodes)} nodes have too little free capacity"

    def _find_taken(self) -> _Taken:
        """Add up what is promised; the lock is held."""
        taken = _Taken()
        for node, promise in self._kept.values():
            taken.add(node.id, promise)
        with translated("look what the nodes of the Swarm have left"):
            promised, tasks = self._list_promised()
        for task in tasks:
            if task["Status"]["State"] not in _ENDED and task["ServiceID"] in promised:
                taken.add(task.get("NodeID", ""), promised[task["ServiceID"]])
        return taken

    def _list_promised(self) -> tuple[dict[str, Promise], list[dict[str, Any]]]:
        """List what services promise, by their ids, and their tasks."""
        while True:
            promised = {each["ID"]: read_promise(each["Spec"]) for each in self._api.services()}
            try:
                # Named, since the tasks of services that are gone stay for ever.
                return promised, self._api.tasks(filters={"service": list(promised)}) if promised else []
            except docker.errors.NotFound:
                continue  # one went in between

    def _await_choice(self, service: str) -> bool:
        """Wait until the Swarm has given a service's task to its node; False where it says that it does not."""
        deadline = time.monotonic() + _CHOICE_SECONDS
        while time.monotonic() < deadline:
            for task in self._api.tasks(filters={"service": service}):
                if task.get("NodeID"):
                    return True
                if task["Status"].get("Err"):
                    return False
            time.sleep(_POLL_SECONDS)
        return False
