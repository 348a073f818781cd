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
"""Docker's own rule for names; it also makes a name safe as one path component."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host that the container sees.

    Attributes:
        source: absolute path of an existing folder on the host.
        target: absolute path inside the container, e.g. ``/opt/ml``.
        read_only: the container may not write below it. Local processes are held to it where they have mounts.
        own: paths below ``target`` at which the container sees nothing of its image. What the image has elsewhere below
            ``target`` is copied into ``source`` before the container starts. None: the mount hides all of it.

    Raises:
        ValueError: a path that is not absolute.
    """

    source: Path
    target: str
    read_only: bool = False
    own: tuple[str, ...] | None = None

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
        name: unique on this engine; letters, digits, ``_``, ``.`` and ``-``.
        image: the image as the request named it; the back end resolves it (see ``ContainerRuntime.resolve_image``).
        command: arguments after the image's entry point, as in ``docker run IMAGE train``.
        entrypoint: replaces the image's entry point when given.
        environment: exactly what the container gets on top of what its image sets; nothing of the host's leaks in.
        mounts: folders shared with the host.
        hostname: what the container calls itself and can resolve, e.g. ``algo-1``; the engine's choice when None.
            A local process keeps the host's name.
        network: name of a network that ``ContainerRuntime.create_network`` made, with ``hostname`` among its hosts; the
            back end's own when None.
        isolated: it reaches nothing over a network, and nothing reaches it, but for the other hosts of ``network``.
        servers: what ``ContainerRuntime.offer`` is for all containers, for this one: by port who takes the socket.
        read_only_root: it can write to its mounts and to ``scratch`` only; the process back end cannot enforce this.
        scratch: a folder of the host that is the container's alone: its /tmp, its home and what pip installs for it are
            there. None for a place of the back end's choice; a local process that has no mounts has that, too.
        labels: how the container is found again after a restart; ``find`` matches on them.
        memory_bytes: hard limit, or None for no limit.
        cpus: processors that it may use at once, or None for all of them; the process back end cannot enforce this.
        shm_bytes: size of /dev/shm, or None for the engine's default.
        max_processes: processes and threads that it may have at once; the process back end cannot enforce this.
        niceness: how far a local process stands back where processors are short, from 0 to 19. An engine divides them
            among its containers by itself.

    Raises:
        ValueError: a name that no engine takes, a limit that is not positive, a network without a hostname, a scratch
            folder whose path is not absolute.
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
