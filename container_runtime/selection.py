"""Selection of the container back end, with the reason."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.machine import count_memory_bytes
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import EngineRefusedError, EngineUnavailableError, ImageNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from container_runtime.process.warm_interpreters import WarmOptions
    from container_runtime.runtime import ContainerRuntime

_BUILD = "smdebug-emulator images build"


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """The selected back end.

    Attributes:
        runtime: the back end.
        reason: one or two sentences for the user who starts the emulator.
        describe_swarm: reports the nodes of the Swarm and what runs on them. None if the back end is not a Swarm.
    """

    runtime: ContainerRuntime
    reason: str
    describe_swarm: Callable[[], dict[str, Any]] | None = None


def select_runtime(
    choice: Literal["auto", "docker", "process", "swarm"],
    state_dir: Path,
    user: tuple[int, int] | None = None,
    *,
    strict_versions: bool = False,
    allow_internet: bool = False,
    address: str | None = None,
    registry: str | None = None,
    carry: bool = False,
    lost: Path | None = None,
    warm: WarmOptions | None = None,
    warm_memory_bytes: int | None = None,
) -> ChosenRuntime:
    """Create the requested back end.

    ``auto`` selects Docker if an engine answers and has this project's images, otherwise local processes.

    Args:
        choice: name of the back end, or ``auto``.
        state_dir: the emulator's state folder. The process back end keeps its containers in it. Docker containers are
            labelled with an id derived from its path, so that an emulator with the same folder finds them again.
        user: uid and gid of Docker and Swarm containers; see ``choose_user``.
        strict_versions: whether to refuse an image whose version no local image has.
        allow_internet: whether Docker and Swarm containers can reach the internet, and so everything else on their
            network.
        address: IP address of this machine for Swarm containers that can reach the internet. The default is the
            address of the manager's node.
        carry: whether the nodes of a Swarm share no folder with this machine. The files that jobs read and write are
            then copied between the machines.
        registry: prefix of the image names that the nodes of a Swarm pull. By default they get images from the manager.
        lost: folder whose content this machine has lost while Swarm containers still have it. None if nothing was lost.
        warm: how local processes keep warm interpreters. None for no warm interpreters, and no spare containers.
        warm_memory_bytes: most memory of spare Docker containers. The default is a quarter of the machine's.

    Raises:
        EngineUnavailableError: ``docker`` or ``swarm`` was requested, and no engine or no manager answers.
        ImageNotFoundError: ``docker`` was requested and this project's images are not built, or ``swarm`` was
            requested and the image of the rules is not built.
        ContainerRuntimeError: the state folder cannot be used.
    """
    catalogue = ImageCatalogue(strict=strict_versions)
    if choice == "process":
        return _choose_local(state_dir, catalogue, warm, "Containers run as local processes, as asked for.")
    reach = "the internet" if allow_internet else "this emulator and nothing else"
    if choice == "swarm":
        from container_runtime.swarm.engine import SwarmEngine

        swarm = SwarmEngine(
            name_instance(state_dir),
            state_dir / "swarm",
            catalogue,
            user,
            allow_internet=allow_internet,
            address=address,
            registry=registry,
            carry=carry,
            lost=lost,
        )
        nodes = f"Containers run on the {swarm.count_nodes()} nodes of a Swarm, as asked for."
        return ChosenRuntime(swarm, f"{nodes} They reach {reach}.", swarm.describe)
    # A local import, because --runtime process needs no Docker client.
    from container_runtime.docker.engine import DockerEngine
    from container_runtime.docker.local_images import missing_images
    from container_runtime.docker.own_container import check_mounted_folder
    from container_runtime.docker.spares import SpareOptions

    try:
        missing = missing_images(catalogue)
    except EngineUnavailableError as error:
        if choice == "docker":
            raise
        if isinstance(error, EngineRefusedError):
            return _choose_local(
                state_dir, catalogue, warm, f"Containers run as local processes, not on Docker. {error}"
            )
        return _choose_local(state_dir, catalogue, warm, "No Docker engine answers: containers run as local processes.")
    if missing and choice == "docker":
        raise ImageNotFoundError(f"The engine has no image {', '.join(missing)}: run {_BUILD} first.")
    if missing:
        reason = f"A Docker engine answers, but images are missing ({_BUILD}): containers run as local processes."
        return _choose_local(state_dir, catalogue, warm, reason)
    why = "as asked for" if choice == "docker" else "an engine answers and has the images"
    check_mounted_folder(state_dir)
    sidecars = None if allow_internet else state_dir / "sidecars"
    most = 0 if warm is None else count_memory_bytes() // 4 if warm_memory_bytes is None else warm_memory_bytes
    spares = SpareOptions(state_dir.absolute() / "spares", most)
    engine = DockerEngine(name_instance(state_dir), catalogue, user, sidecars, spares)
    return ChosenRuntime(engine, f"Containers run on Docker: {why}. They reach {reach}.")


def name_instance(state_dir: Path) -> str:
    """Return the instance id of the emulator with this state folder: 12 hexadecimal digits."""
    return hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]


def _choose_local(state_dir: Path, catalogue: ImageCatalogue, warm: WarmOptions | None, reason: str) -> ChosenRuntime:
    runtime = LocalProcesses(state_dir / "containers", catalogue, warm=warm)
    if not runtime.grant.mounts:
        reason += (
            f" The kernel grants them no namespaces ({runtime.grant.refusal}): they find no /opt/ml, but its place in "
            "SAGEMAKER_BASE_DIR, and cannot be without a network."
        )
    return ChosenRuntime(runtime, reason)
