"""Container runtime interface, and the errors of this package.

``tests/contract/test_container_runtime.py`` runs one suite against every implementation.

    ContainerRuntimeError           a back end could not do what was asked
    ├── EngineUnavailableError      the engine does not answer
    ├── ImageNotFoundError          no image answers to the name
    ├── ContainerNotFoundError      no container has the id
    ├── ContainerStartError         the image is there, the container did not start
    ├── NetworkExhaustedError       no address range is left, or no machine has room
    ├── WheelhouseError             pip could not fetch or build a wheel
    └── EnvironmentBuildError       an image's virtual environment could not be made
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from socket import socket

    from container_runtime.meter import Meter
    from container_runtime.spec import ContainerSpec, Mount


class ContainerRuntimeError(Exception):
    """A back end could not do what was asked; the message says what to do about it."""


class EngineUnavailableError(ContainerRuntimeError):
    """The engine does not answer (any more)."""


class EngineRefusedError(EngineUnavailableError):
    """There is an engine's socket, and this user may not open it."""


class ImageNotFoundError(ContainerRuntimeError):
    """No local image answers to the requested name, and it cannot be pulled."""


class ContainerNotFoundError(ContainerRuntimeError):
    """No container of that id is known to the back end."""


class ContainerStartError(ContainerRuntimeError):
    """The image is there but the container did not start, e.g. its entry point is missing."""


class NetworkExhaustedError(ContainerRuntimeError):
    """The back end has no address range left for one more network, or no machine with room for a container."""


class WheelhouseError(ContainerRuntimeError):
    """pip could not fetch or build a wheel; the text holds pip's last lines."""


class EnvironmentBuildError(ContainerRuntimeError):
    """An image's virtual environment could not be made; the text says why."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network of containers that reach each other, and no container of another network.

    Local processes are not kept apart: their addresses differ, and that is all.

    Attributes:
        name: its name on this engine.
        addresses: by host name, what the other containers of the network reach that host by: the name itself, or an
            IP address where names of containers do not resolve.
        interface: the network interface that these addresses belong to, as a container calls it.
        rendezvous_port: TCP port for the containers' first meeting. Where all containers share one machine's ports,
            one that nothing listened on when the network was made, and that no other network of it was given.
    """

    name: str
    addresses: Mapping[str, str]
    interface: str
    rendezvous_port: int


@dataclass(frozen=True, slots=True)
class ResolvedImage:
    """The local image that stands for a requested one.

    Attributes:
        requested: the name in the request.
        local: the name the back end runs.
        note: what every job in the image is told; None for nothing.
        substitution: how it differs from the requested one, such as in its version; None when it does not.
    """

    requested: str
    local: str
    note: str | None = None
    substitution: str | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended.

    Attributes:
        code: exit code; 128 + N for a death by signal N, as Docker counts.
        out_of_memory: it was killed at its memory limit.
    """

    code: int
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a container has taken of the machine.

    Attributes:
        cpu_seconds: processor time of all its processes since its start.
        memory_bytes: what they hold now, pages that several of them share counted once, files' cache left out.
    """

    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line a container printed.

    Attributes:
        timestamp_ms: epoch milliseconds at which the back end received it.
        text: the line without its newline, decoded as UTF-8 with replacement characters.
    """

    timestamp_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Container:
    """A container that the back end knows, running or ended and not yet removed.

    ``labels`` are the spec's, and with Docker also those that the image brings.
    """

    id: str
    name: str
    labels: Mapping[str, str]
    running: bool


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """A network that the back end knows, with its labels."""

    name: str
    labels: Mapping[str, str]


MAX_NETWORK_HOSTS = 250
"""What the smaller of the two back ends' address ranges holds, with some addresses that are not for hosts."""

MAX_LINE_BYTES = 1024 * 1024
"""A longer line is cut into pieces, so that no back end holds an endless line in memory."""


NETWORK_CLOSED = "smdebug-emulator: The network of this container is closed"
"""How a line begins that a back end adds to the log of a container that misses the internet."""


class ContainerRuntime(Protocol):
    """Starts containers, follows their logs, waits for them, stops and removes them. Thread safe."""

    @property
    def name(self) -> str:
        """``docker``, ``process`` or ``swarm``."""

    @property
    def host_address(self) -> str:
        """IP address at which a container reaches a server of this host that was offered (also one to listen on)."""

    def offer(self, port: int, take: Callable[[socket], None]) -> None:
        """Let all containers from now on, and those that are found, reach a TCP port at ``host_address``.

        Args:
            port: of a server that listens on ``host_address``.
            take: is given a listening socket of each container that has a network to itself, to accept connections from
                it until it is shut down. Never called where containers reach the server's own socket.

        Raises:
            EngineUnavailableError: the engine does not answer.
        """

    def resolve_image(self, image: str, say: Callable[[str], None] = ...) -> ResolvedImage:
        """Find the local image for ``image``; one that is built on demand may be built here, which takes minutes.

        Args:
            image: as the request names it.
            say: told how a build goes.

        Raises:
            ImageNotFoundError: nothing local fits and nothing can be pulled, or its version is refused.
            ContainerRuntimeError: it is to be built, and cannot be.
        """

    def describe_substitution(self, image: str) -> str | None:
        """Say how the local image for ``image`` will differ from it; None where it will not, or cannot be told yet.

        Nothing is built or pulled for it, and an engine that does not answer is no error.
        """

    def path_in_container(self, mount: Mount, relative: str) -> str:
        """How a container with ``mount`` sees ``mount.source / relative``."""

    def reserve_capacity(
        self, specs: Sequence[ContainerSpec], check: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Wait until there is room for all of these containers at once, and keep it while they are started.

        Args:
            specs: of the containers that ``start`` is called with in the context.
            check: called now and then; what it raises ends the wait.

        Raises:
            NetworkExhaustedError: no machine is large enough.
            ImageNotFoundError, ContainerRuntimeError: as ``resolve_image``.
        """

    def start(self, spec: ContainerSpec) -> str:
        """Start a container and return its id. When this returns it is running (or has run).

        Raises:
            NetworkExhaustedError: no room was kept for it, and there was none for two minutes.
            ImageNotFoundError: as ``resolve_image``.
            ContainerStartError: the name is taken, a mount's source or the network is missing, or the entry point
                cannot be run.
            EngineUnavailableError: the engine does not answer.
        """

    def logs(self, container_id: str) -> Iterator[LogLine]:
        """Yield every line from the first one on, following until the container has ended.

        Standard output and standard error come in one stream. A line longer than 1 MiB comes in pieces.

        Raises:
            ContainerNotFoundError: at once, not at the first line.
            EngineUnavailableError: the engine went away; the container may run on.
        """

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        """Wait until it has ended; None when ``timeout`` seconds passed first. May be asked again and again.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def read_usage(self, container_id: str) -> Usage | None:
        """Measure it now; None when it has ended.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def open_meter(self, container_id: str) -> Meter | None:
        """Open what measures it many times a second; None when it has ended.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
            ContainerRuntimeError: it cannot be measured from here, as on an engine of another machine.
        """

    def stop(self, container_id: str, grace_seconds: float) -> None:
        """SIGTERM, then SIGKILL after ``grace_seconds``. Returns when it has ended. Idempotent.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def remove(self, container_id: str) -> None:
        """Forget a container and free what it holds; one that still runs is killed first. Idempotent."""

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        """All containers of this back end, running or ended, that carry every one of ``labels``."""

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        """Make a network for containers whose host names are ``hosts``. They can reach ``host_address`` from it.

        Args:
            name: unique on this engine; the same rule as for containers.
            hosts: at most ``MAX_NETWORK_HOSTS``.
            labels: how it is found again after a restart.
            isolated: they reach each other and nothing else; their specs say so, too.

        Raises:
            NetworkExhaustedError: there is no address range left.
            ContainerStartError: this machine cannot isolate several hosts.
            ContainerRuntimeError: the name is taken.
            EngineUnavailableError: the engine does not answer.
        """

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        """All networks of this back end that carry every one of ``labels``."""

    def remove_network(self, name: str) -> None:
        """Give a network back, after its containers were removed. Idempotent.

        Raises:
            ContainerRuntimeError: containers are on it.
            EngineUnavailableError: the engine does not answer.
        """

    def close(self) -> None:
        """Give back what the back end itself holds (its network, when empty). Containers are left alone."""


class OneMachine:
    """A back end of one machine: it keeps no room, since whoever lets jobs in counts what the machine bears."""

    def reserve_capacity(
        self,
        specs: Sequence[ContainerSpec],  # noqa: ARG002 - see above
        check: Callable[[], None],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """See ``ContainerRuntime``."""
        return nullcontext()
