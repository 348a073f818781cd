"""Container specification, the same for every back end."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}")
"""Docker's rule for container names. It also makes a name safe as one path component."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host that is mounted into a container.

    Attributes:
        source: absolute path of an existing folder on the host.
        target: absolute path inside the container, for example ``/opt/ml``.
        read_only: whether the container is prevented from writing below ``target``. For local processes this holds
            only if the kernel grants them mounts.
        exclusive: whether a read-only folder is only this container's, as every folder that it writes to is. The back
            end may then move its content into another folder that takes its place.
        own: paths below ``target`` at which the container sees no files of its image. The image's other files below
            ``target`` are copied into ``source`` before the container starts. None if the mount hides all of the
            image's files there.

    Raises:
        ValueError: a path is not absolute.
    """

    source: Path
    target: str
    read_only: bool = False
    own: tuple[str, ...] | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        if not self.source.is_absolute() or not PurePosixPath(self.target).is_absolute():
            raise ValueError(f"Mount {self.source} -> {self.target}: give two absolute paths.")

    def find_inside(self, relative: str) -> str:
        """Return the path at which the container sees ``source / relative``."""
        return str(PurePosixPath(self.target) / relative)


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container to start.

    Attributes:
        name: container name, unique on this engine: letters, digits, ``_``, ``.`` and ``-``.
        image: image name in the request. The back end resolves it; see ``ContainerRuntime.resolve_image``.
        command: arguments after the image's entry point, as in ``docker run IMAGE train``.
        entrypoint: entry point that replaces the image's, or None.
        environment: environment variables of the container, in addition to the image's. It gets none of the host's.
        mounts: folders shared with the host.
        hostname: host name of the container, which it can also resolve, for example ``algo-1``. If None, the engine
            chooses one. A local process keeps the host name of the machine.
        network: name of a network that ``ContainerRuntime.create_network`` created, with ``hostname`` among its hosts.
            If None, the container uses the back end's own network.
        isolated: whether the container has no network connections except to the other hosts of ``network``.
        servers: servers that only this container reaches: the ``take`` argument of ``ContainerRuntime.offer`` by port.
        read_only_root: whether the container can write only to its mounts and to ``scratch``. The process back end
            cannot enforce this.
        scratch: folder of the host that only this container uses. It holds the container's /tmp, its home directory
            and the packages that pip installs for it. If None, or for a local process without mounts, the back end
            chooses the location.
        labels: labels by which ``ContainerRuntime.find`` finds the container after a restart.
        memory_bytes: hard limit, or None for no limit.
        cpus: number of CPUs that the container may use at once, or None for all. The process back end cannot enforce
            this.
        gpus: number of GPUs that the container gets, where the back end hands some out; see
            ``ContainerRuntime.hands_gpus``.
        shm_bytes: size of /dev/shm, or None for the engine's default.
        max_processes: most processes and threads of the container at once. The process back end cannot enforce this.
        niceness: niceness of a local process, from 0 to 19: a higher value yields more CPU time to other processes. It
            has no effect on engines, which divide the CPUs among their containers themselves.

    Raises:
        ValueError: the name is not valid, a limit is not positive, a network is given without a hostname, or the path
            of the scratch folder is not absolute.
    """

    name: str
    image: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    hostname: str | None = None
    network: str | None = None
    isolated: bool = False
    servers: Mapping[int, Callable[[socket], None]] = field(default_factory=dict)
    read_only_root: bool = False
    scratch: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int | None = None
    cpus: int | None = None
    gpus: int = 0
    shm_bytes: int | None = None
    max_processes: int = 4096
    niceness: int = 0

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"Container name {self.name!r}: use 2 to 128 of a-z, A-Z, 0-9, '_', '.', '-'.")
        if self.network is not None and not self.hostname:
            raise ValueError(f"Container {self.name}: on the network {self.network} it needs a hostname.")
        if self.scratch is not None and not self.scratch.is_absolute():
            raise ValueError(f"Container {self.name}: scratch is {self.scratch}; give an absolute path.")
        for field_name, limit in (
            ("memory_bytes", self.memory_bytes),
            ("cpus", self.cpus),
            ("shm_bytes", self.shm_bytes),
            ("max_processes", self.max_processes),
        ):
            if limit is not None and limit <= 0:
                raise ValueError(f"Container {self.name}: {field_name} is {limit}; give a positive number or None.")
