"""What a node has room for: what was promised to the containers that run on it, or will, is taken from what it has.

Swarm's own reservations would do that, but for one thing: with them, a manager that hears something new of a node, as
it does with each new network, goes through all tasks of the node, those that have ended long ago included, and takes
away what it finds no room for, running or not. The ended tasks of jobs are never forgotten. So our services reserve
nothing, have what they are promised in a label, and are kept from nodes that are full.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from container_runtime.docker.border import build_url, raise_for_status, translated
from container_runtime.runtime import NetworkExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    import docker

    from container_runtime.swarm.nodes import SwarmNode

PROMISE_LABEL = "smdebug-emulator.promised"
"""On a service: see ``Promise.write``."""
# For so long a container waits for room; one whose node was chosen has that node within moments.
_WAIT_SECONDS, _LOOK_SECONDS = 120.0, 0.5
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


def read_promise(service: Mapping[str, Any]) -> Promise:
    """Read what a service's tasks are promised, each: of ours by the label, of others by what they reserve."""
    label = service["Labels"].get(PROMISE_LABEL)
    if label is not None:
        return Promise(*map(int, label.split()))
    reserved = service["TaskTemplate"].get("Resources", {}).get("Reservations", {})
    return Promise(reserved.get("NanoCPUs", 0), reserved.get("MemoryBytes", 0))


class Room:
    """Gives services to nodes that have room for them, one after the other."""

    def __init__(self, api: docker.APIClient) -> None:
        """Take the manager's engine."""
        self._api = api
        # Until a service has its node, nobody can tell what is left there.
        self._choosing = threading.Lock()
        self.waiting: dict[str, str] = {}
        """Why a container waits, by its name: none of the nodes has room for it."""

    def place(
        self,
        container: str,
        service: dict[str, Any],
        list_nodes: Callable[[], Collection[SwarmNode]],
        list_others: Callable[[Collection[SwarmNode]], Iterable[str]],
    ) -> Collection[SwarmNode]:
        """Create a service of one task as soon as a node has room for it; return the nodes that it could have.

        Args:
            container: its name.
            service: with its promise, and without a placement.
            list_nodes: lists the nodes that can run it, anew at each look.
            list_others: lists the ids of those beside them.

        Raises:
            NetworkExhaustedError: none had room for two minutes.
            docker.errors.APIError: the engine refuses the service.
        """
        promise, deadline = read_promise(service), time.monotonic() + _WAIT_SECONDS
        try:
            while True:
                nodes = list_nodes()
                with self._choosing:
                    full = self._find_full(nodes, promise)
                    if len(full) < len(nodes):
                        without = sorted({*full, *list_others(nodes)})
                        service["TaskTemplate"]["Placement"] = {"Constraints": [f"node.id!={each}" for each in without]}
                        raise_for_status(self._api.post(build_url(self._api, "/services/create"), json=service))
                        try:
                            self._await_choice(service["Name"])
                        except BaseException:
                            self._api.remove_service(service["Name"])
                            raise
                        return nodes
                why = f"no node has room: {len(full)} of {len(nodes)} are full"
                if time.monotonic() > deadline:
                    raise NetworkExhaustedError(
                        f"No node of the Swarm has started {container} within {_WAIT_SECONDS:g} s: {why}."
                    )
                self.waiting[container] = why
                time.sleep(_LOOK_SECONDS)
        finally:
            self.waiting.pop(container, None)

    def _find_full(self, nodes: Collection[SwarmNode], promise: Promise) -> list[str]:
        """Find the ids of the nodes that have less left than is to be promised."""
        cpus, memory = Counter[str](), Counter[str]()
        with translated("look what the nodes of the Swarm have left"):
            promised = {each["ID"]: read_promise(each["Spec"]) for each in self._api.services()}
            # Named, since the tasks of services that are gone stay for ever.
            tasks = self._api.tasks(filters={"service": list(promised)}) if promised else []
        for task in tasks:
            if task["Status"]["State"] not in _ENDED and task["ServiceID"] in promised:
                cpus[task.get("NodeID", "")] += promised[task["ServiceID"]].nano_cpus
                memory[task.get("NodeID", "")] += promised[task["ServiceID"]].memory_bytes
        return [
            node.id
            for node in nodes
            if cpus[node.id] + promise.nano_cpus > node.cpus * 10**9
            or memory[node.id] + promise.memory_bytes > node.memory_bytes
        ]

    def _await_choice(self, service: str) -> None:
        """Wait until the Swarm has given a service's task to a node, or has said that it does not."""
        deadline = time.monotonic() + _CHOICE_SECONDS
        while time.monotonic() < deadline:
            tasks = self._api.tasks(filters={"service": service})
            if any(each.get("NodeID") or each["Status"].get("Err") for each in tasks):
                return
            time.sleep(_POLL_SECONDS)
