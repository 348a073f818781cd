"""Simulated container runtime: nodes with capacity, faults and compressed time.

Its containers are numbers.

It keeps the interface of ``container_runtime.runtime.ContainerRuntime`` as a Swarm would: a container waits for a node
that has room, one of a node that is lost is lost with it, and the manager may be away for a while.
"""

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from socket import socket

from container_runtime.meter import Meter
from container_runtime.runtime import (
    Container,
    ContainerNotFoundError,
    ContainerStartError,
    EngineUnavailableError,
    Exit,
    FoundNetwork,
    LogLine,
    Network,
    OneMachine,
    ResolvedImage,
    Usage,
)
from container_runtime.spec import ContainerSpec, Mount

PLAN = "SIMULATED_PLAN"
"""The variable of a container's environment that says what becomes of it: an end, and after how many seconds."""
REFUSED = "the image is of another architecture"


@dataclass(slots=True, eq=False)
class _Simulated:
    """A container.

    Attributes:
        spec: what was asked for.
        node: that it is on.
        exit: how it ended; None while it runs.
        lost: whether its node is gone, so that nobody will ever tell.
    """

    id: str
    spec: ContainerSpec
    node: int
    exit: Exit | None = None
    lost: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def runs(self) -> bool:
        return self.exit is None and not self.lost


class Clock:
    """Compressed time: what is due happens in its order, in a thread of its own. Nothing is due before ``start``."""

    def __init__(self, compression: float) -> None:
        """Create a clock that stands at 0.

        Args:
            compression: simulated seconds in one of the machine's.
        """
        self.compression = compression
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._closed = False
        self._began: float | None = None
        self._thread = threading.Thread(target=self._run, name="clock")
        self._thread.start()

    def start(self) -> None:
        with self._changed:
            self._began = time.monotonic()
            self._changed.notify()

    def now(self) -> float:
        """Return the simulated seconds since ``start``."""
        return 0.0 if self._began is None else (time.monotonic() - self._began) * self.compression

    def after(self, seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen in so many simulated seconds."""
        with self._changed:
            heapq.heappush(self._due, (self.now() + seconds, next(self._numbers), happen))
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (self._began is None or not self._due or self._due[0][0] > self.now()):
                    goes = self._began is not None and self._due
                    self._changed.wait((self._due[0][0] - self.now()) / self.compression if goes else None)
                if self._closed:
                    return
                happen = heapq.heappop(self._due)[2]
            happen()


class SimulatedNodes(OneMachine):
    """A Swarm of numbers. Thread safe.

    Attributes:
        most_running: so many containers ran at once at most.
        wrong: what must never be, in words.
        lost: containers whose node was lost.
    """

    name = "simulated"
    hands_gpus = False
    host_address = "127.0.0.1"

    def __init__(self, nodes: int, clock: Clock) -> None:
        self._clock = clock
        self._free = set(range(nodes))
        self._dead: set[int] = set()
        self._containers: dict[str, _Simulated] = {}
        self._networks: dict[str, Mapping[str, str]] = {}
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._away = False
        self.most_running = self.lost = self.begun = 0
        self.wrong: list[str] = []

    # What goes wrong.

    def lose(self, node: int, seconds: float) -> None:
        """Lose a node and what is on it, for so many simulated seconds."""
        with self._changed:
            if node in self._dead:
                return
            self._dead.add(node)
            self._free.discard(node)
            for each in self._containers.values():
                if each.node == node and each.runs:
                    each.lost = True
                    self.lost += 1
                    each.ended.set()
        self._clock.after(seconds, lambda: self._return(node))

    def list_busy(self) -> list[int]:
        """List the nodes on which a container runs."""
        with self._changed:
            return sorted({each.node for each in self._containers.values() if each.runs})

    def go_away(self, seconds: float) -> None:
        """Let the manager answer nobody for so many simulated seconds; what runs goes on."""
        with self._changed:
            self._away = True
        self._clock.after(seconds, self._come_back)

    def _come_back(self) -> None:
        with self._changed:
            self._away = False
            self._changed.notify_all()

    def _return(self, node: int) -> None:
        with self._changed:
            self._dead.discard(node)
            self._free.add(node)
            self._changed.notify_all()

    # The interface.

    def offer(self, port: int, take: Callable[[socket], None]) -> None:
        """No container asks for anything."""

    def resolve_image(self, image: str, say: Callable[[str], None] = print) -> ResolvedImage:
        return ResolvedImage(image, image)

    def keep_ready(self, spec: ContainerSpec, seconds: float | None = None) -> bool:
        return False

    def is_ready(self, spec: ContainerSpec) -> bool:
        return False

    def describe_substitution(self, image: str) -> str | None:
        return None

    def has_image(self, image: str, *, exactly: bool = True) -> bool:
        return True

    def path_in_container(self, mount: Mount, relative: str) -> str:
        return mount.find_inside(relative)

    def start(self, spec: ContainerSpec) -> str:
        end, seconds = spec.environment[PLAN].split()
        if end == "refuse":
            raise ContainerStartError(f"Container {spec.name}: {REFUSED}.")
        with self._changed:
            self._check()
            if any(each.spec.name == spec.name and each.runs for each in self._containers.values()):
                self.wrong.append(f"{spec.name} runs twice")
            # As tasks of a Swarm, it waits for a node.
            while not self._free:
                self._changed.wait()
            container = _Simulated(f"container-{next(self._numbers)}", spec, self._free.pop())
            self._containers[container.id] = container
            self.begun += 1
            self.most_running = max(self.most_running, sum(each.runs for each in self._containers.values()))
        code = {"fail": 1, "kill": 137}.get(end, 0)
        self._clock.after(float(seconds), lambda: self._end(container, Exit(code, out_of_memory=end == "kill")))
        return container.id

    def logs(self, container_id: str) -> Iterator[LogLine]:
        container = self._find(container_id)

        def follow() -> Iterator[LogLine]:
            yield LogLine(time.time_ns() // 1_000_000, "it trains")
            container.ended.wait()

        return follow()

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        container = self._find(container_id)
        if not container.ended.wait(timeout):
            return None
        if container.lost:
            raise EngineUnavailableError(f"The node {container.node} of container {container_id} is lost.")
        return container.exit

    def read_usage(self, container_id: str) -> Usage | None:
        return None

    def open_meter(self, container_id: str) -> Meter | None:
        return None

    def stop(self, container_id: str, grace_seconds: float) -> None:
        container = self._find(container_id)
        self._end(container, Exit(143 if grace_seconds else 137))

    def remove(self, container_id: str) -> None:
        with self._changed:
            container = self._containers.get(container_id)
            if container is not None:
                self._end(container, Exit(137))
                del self._containers[container_id]

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        with self._changed:
            self._check()
            return [
                Container(each.id, each.spec.name, each.spec.labels, each.exit is None)
                for each in self._containers.values()
                if not each.lost and labels.items() <= each.spec.labels.items()
            ]

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        with self._changed:
            self._networks[name] = labels
        return Network(name, {host: host for host in hosts}, "eth0", 7777)

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        return [FoundNetwork(name, found) for name, found in self._networks.items() if labels.items() <= found.items()]

    def remove_network(self, name: str) -> None:
        with self._changed:
            self._networks.pop(name, None)

    def close(self) -> None:
        """There is nothing to give back."""

    def list_left(self) -> list[str]:
        """List what nobody removed; of a lost node nobody can."""
        left = [each.spec.name for each in self._containers.values() if not each.lost]
        return left + list(self._networks)

    def _find(self, container_id: str) -> _Simulated:
        with self._changed:
            if container_id not in self._containers:
                raise ContainerNotFoundError(f"There is no container {container_id}.")
            return self._containers[container_id]

    def _check(self) -> None:
        """Raise while the manager is away; the lock is held."""
        if self._away:
            raise EngineUnavailableError("The manager does not answer.")

    def _end(self, container: _Simulated, exit_status: Exit) -> None:
        with self._changed:
            if container.ended.is_set():
                return
            container.exit = exit_status
            if container.node not in self._dead:
                self._free.add(container.node)
            container.ended.set()
            self._changed.notify()
