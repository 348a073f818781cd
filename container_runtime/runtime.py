"""Container runtime interface, and the errors of this package.

``container_runtime/contract/`` is one suite for every implementation.

    ContainerRuntimeError           an operation of a back end failed
    ├── EngineUnavailableError      the engine does not answer
    │   └── EngineRefusedError      this user may not open the engine's socket
    ├── ImageNotFoundError          no image has the name
    ├── ContainerNotFoundError      no container has the id
    ├── ContainerStartError         the image exists, but the container did not start
    ├── NetworkExhaustedError       no address range is free, or no machine has enough capacity
    ├── WheelhouseError             pip could not fetch or build a wheel
    └── EnvironmentBuildError       the virtual environment of an image could not be built
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from socket import socket

    from container_runtime.meter import Meter
    from container_runtime.spec import ContainerSpec, Mount


class ContainerRuntimeError(Exception):
    """An operation of a back end failed; the message says what to do about it."""


class EngineUnavailableError(ContainerRuntimeError):
    """The engine does not answer, or has stopped answering."""


class EngineRefusedError(EngineUnavailableError):
    """The engine's socket exists, but this user may not open it."""


class ImageNotFoundError(ContainerRuntimeError):
    """No local image matches the requested name, and the image cannot be pulled."""


class VersionRefusedError(ImageNotFoundError):
    """No local image has the requested version, and the emulator was started with ``--strict-versions``."""


class ContainerNotFoundError(ContainerRuntimeError):
    """The back end knows no container with that id."""


class ContainerStartError(ContainerRuntimeError):
    """The image exists but the container did not start, for example because its entry point is missing."""


class NetworkExhaustedError(ContainerRuntimeError):
    """The back end has no free address range for another network, or no machine with enough capacity."""


class WheelhouseError(ContainerRuntimeError):
    """pip could not fetch or build a wheel; the message holds the last lines of pip's output."""


class EnvironmentBuildError(ContainerRuntimeError):
    """The virtual environment of an image could not be built; the message says why."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network whose containers reach each other, but no container of another network.

    Local processes are not isolated from each other. They only have different addresses.

    Attributes:
        name: name of the network on this engine.
        addresses: the address of each host by host name, as the other containers use it. This is the host name itself,
            or an IP address if container names do not resolve.
        interface: name, inside a container, of the network interface that has these addresses.
        rendezvous_port: TCP port at which the containers first connect to each other. If all containers share the
            ports of one machine, nothing listened on this port when the network was created, and no other network of
            that machine has it.
    """

    name: str
    addresses: Mapping[str, str]
    interface: str
    rendezvous_port: int


@dataclass(frozen=True, slots=True)
class ResolvedImage:
    """The local image that runs instead of a requested one.

    Attributes:
        requested: image name in the request.
        local: image name that the back end runs.
        note: message for the log of every job that runs the image, or None.
        substitution: how the local image differs from the requested one, for example in its version. None if it does
            not differ.
    """

    requested: str
    local: str
    note: str | None = None
    substitution: str | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit status of a container.

    Attributes:
        code: exit code. A container that signal N killed has 128 + N, as with Docker.
        out_of_memory: whether the container was killed because it reached its memory limit.
    """

    code: int
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a container uses.

    Attributes:
        cpu_seconds: CPU time of all processes of the container since it started.
        memory_bytes: memory that the processes hold now. Shared pages count once; the page cache does not count.
    """

    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a container printed.

    Attributes:
        timestamp_ms: epoch milliseconds at which the back end received the line.
        text: the line without its newline, decoded as UTF-8 with replacement characters.
    """

    timestamp_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Container:
    """A container that the back end knows: one that runs, or one that has ended but was not removed yet.

    ``labels`` are the labels of the spec. With Docker they include the labels of the image.
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
"""Most hosts of one network: what the smallest address range of a back end holds, less some reserved addresses."""

MAX_LINE_BYTES = 1024 * 1024
"""Most bytes of one log line. A longer line is split, so that no back end holds an endless line in memory."""


NETWORK_CLOSED = "smdebug-emulator: The network of this container is closed"
"""Start of the line that a back end adds to the log of a container that tries to reach the internet and cannot."""


STARTED_COLD = "smdebug-emulator: started without a warm interpreter"
"""Start of the line that a back end adds to the log of a container that imports what others find imported."""


class ContainerRuntime(Protocol):
    """Starts containers, follows their logs, waits for them, stops and removes them.

    Implementations are thread-safe.
    """

    @property
    def name(self) -> str:
        """Name of the back end, as its entry point has it: ``docker``, ``process``, ``swarm`` or another's."""

    @property
    def host_address(self) -> str:
        """IP address at which a container reaches a server that ``offer`` has announced; the server listens on it."""

    @property
    def hands_gpus(self) -> bool:
        """Whether a container whose spec asks for GPUs gets GPUs of its machine."""

    def offer(self, port: int, take: Callable[[socket], None]) -> None:
        """Let containers reach a TCP port at ``host_address``.

        This applies to all containers that start from now on, and to containers that ``find`` returns.

        Args:
            port: TCP port of a server that listens on ``host_address``.
            take: called with a listening socket for each container that has a network of its own. It accepts
                connections from the socket until the socket is shut down. It is never called if containers reach the
                server's own socket.

        Raises:
            EngineUnavailableError: the engine does not answer.
        """

    def resolve_image(self, image: str, say: Callable[[str], None] = ...) -> ResolvedImage:
        """Find the local image for ``image``.

        An image that is built on demand may be built by this call, which takes minutes.

        Args:
            image: image name in the request.
            say: called with progress messages of a build.

        Raises:
            ImageNotFoundError: no local image matches and none can be pulled, or the version is refused.
            ContainerRuntimeError: the image has to be built, and the build failed.
        """

    def describe_substitution(self, image: str) -> str | None:
        """Describe how the local image for ``image`` will differ from it.

        The call builds and pulls nothing. An engine that does not answer is not an error.

        Returns:
            The difference, or None if there is none or it is not known yet.

        Raises:
            VersionRefusedError: no local image has the requested version, and others are refused.
        """

    def has_image(self, image: str, *, exactly: bool = True) -> bool:
        """Return whether an image of exactly this name was loaded; if not ``exactly``, whether a local one runs for it.

        If the engine does not answer: False, and if not ``exactly``, True.
        """

    def path_in_container(self, mount: Mount, relative: str) -> str:
        """Return the path at which a container with ``mount`` sees ``mount.source / relative``."""

    def reserve_capacity(
        self, specs: Sequence[ContainerSpec], check: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Wait until there is capacity for all of these containers at once, and reserve it while they are started.

        Args:
            specs: specs of the containers that are started within the context.
            check: called repeatedly during the wait. An exception that it raises ends the wait.

        Raises:
            NetworkExhaustedError: no machine is large enough.
            ImageNotFoundError, ContainerRuntimeError: as for ``resolve_image``.
        """

    def start(self, spec: ContainerSpec) -> str:
        """Start a container and return its id.

        When this call returns, the container runs or has already ended.

        Raises:
            NetworkExhaustedError: no capacity was reserved for the container, and none became free in two minutes.
            ImageNotFoundError: as for ``resolve_image``.
            ContainerStartError: the name is in use, the source of a mount or the network is missing, or the entry
                point cannot be run.
            EngineUnavailableError: the engine does not answer.
        """

    def keep_ready(self, spec: ContainerSpec, seconds: float | None = None) -> bool:
        """Keep ready what makes containers like that of ``spec`` start quickly, if the back end has such a thing.

        Args:
            spec: spec of a typical container. Its name and the sources of its mounts do not matter.
            seconds: for how long at least; None for as long as the back end is open, and then for one container more
                with each call, where a container takes what is ready.

        Returns:
            Whether the back end can keep something ready for such a container.

        Raises:
            ImageNotFoundError, ContainerRuntimeError: as for ``resolve_image``.
        """

    def is_ready(self, spec: ContainerSpec) -> bool:
        """Return whether a container like that of ``spec`` would start quickly now; see ``keep_ready``.

        Raises:
            ImageNotFoundError, ContainerRuntimeError: as for ``resolve_image``.
        """

    def logs(self, container_id: str) -> Iterator[LogLine]:
        """Yield every line of the log from the first one, and follow the log until the container has ended.

        Standard output and standard error form one stream. A line longer than 1 MiB is split.

        Raises:
            ContainerNotFoundError: raised by the call itself, not at the first line.
            EngineUnavailableError: the engine stopped answering; the container may still run.
        """

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        """Wait until the container has ended, and return its exit status.

        The result is None if ``timeout`` seconds passed first. The method can be called any number of times.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def read_usage(self, container_id: str) -> Usage | None:
        """Measure the resources that the container uses now; None if it has ended.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def open_meter(self, container_id: str) -> Meter | None:
        """Open a meter that can read the container's counters many times a second; None if the container has ended.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
            ContainerRuntimeError: the container cannot be measured from here, for example because the engine is on
                another machine.
        """

    def stop(self, container_id: str, grace_seconds: float) -> None:
        """Send SIGTERM, and SIGKILL after ``grace_seconds``. Return when the container has ended. Idempotent.

        Raises:
            ContainerNotFoundError, EngineUnavailableError.
        """

    def remove(self, container_id: str) -> None:
        """Remove a container and free its resources. A container that still runs is killed first. Idempotent."""

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        """Return all containers of this back end, running or ended, that have every label in ``labels``."""

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        """Create a network for containers with the host names ``hosts``. They can reach ``host_address`` from it.

        Args:
            name: network name, unique on this engine. The rule for container names applies.
            hosts: host names, at most ``MAX_NETWORK_HOSTS``.
            labels: labels by which ``find_networks`` finds the network after a restart.
            isolated: whether the containers reach only each other. Their specs have to be isolated as well.

        Raises:
            NetworkExhaustedError: no address range is free.
            ContainerStartError: this machine cannot isolate several hosts.
            ContainerRuntimeError: the name is in use.
            EngineUnavailableError: the engine does not answer.
        """

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        """Return all networks of this back end that have every label in ``labels``."""

    def remove_network(self, name: str) -> None:
        """Remove a network after its containers were removed. Idempotent.

        Raises:
            ContainerRuntimeError: the network still has containers.
            EngineUnavailableError: the engine does not answer.
        """

    def close(self) -> None:
        """Free the back end's own resources, such as its network if that is empty. Containers are not touched."""


@runtime_checkable
class PreparesInContainers(Protocol):
    """A back end whose containers may make what their image holds themselves, before their command begins."""

    def is_preparing(self, container_id: str) -> bool:
        """Return whether a container has not come to its command yet. It may have ended so."""


class OneMachine:
    """A back end that runs all containers on one machine.

    It reserves no capacity: the caller admits only as many jobs as the machine can handle.
    """

    def reserve_capacity(
        self,
        specs: Sequence[ContainerSpec],  # noqa: ARG002 - see above
        check: Callable[[], None],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Wait for nothing: one machine has no nodes."""
        return nullcontext()
