"""Selection of the container back end, with the reason."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import EngineRefusedError, EngineUnavailableError, ImageNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from container_runtime.runtime import ContainerRuntime

_BUILD = "smdebug-emulator images build"


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """The back end to use.

    Attributes:
        runtime: it.
        reason: a sentence or two for whoever started the emulator.
        describe_swarm: says which nodes there are and what runs on them; None where this machine is the only one.
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
) -> ChosenRuntime:
    """Make the back end that was asked for; ``auto`` takes Docker when an engine answers and has our images.

    Args:
        choice: which one.
        state_dir: the emulator's state folder. The process back end keeps its containers in it; Docker's are labelled
            with a name made of it, so that an emulator on the same folder finds them again.
        user: uid and gid of containers of Docker and Swarm; see ``choose_user``.
        strict_versions: whether images of versions that none here holds are refused.
        allow_internet: whether Docker's containers have a way to the internet, and so to all else around them.
        address: IP address at which containers of a Swarm that reach the internet reach this machine; that of the
            manager's node when not given.
        carry: whether the nodes of a Swarm see no folder of this machine: what jobs read and write is carried.
        registry: what the names of images begin with that a Swarm's nodes pull; they come from the manager when not
            given.
        lost: a folder of which this machine has lost what was below it, though containers of a Swarm still have it;
            None where nothing was lost.

    Raises:
        EngineUnavailableError: ``docker`` or ``swarm`` was asked for, and no engine or no manager answers.
        ImageNotFoundError: ``docker`` was asked for and our images are not built;
            ``swarm``, and that of the rules is not.
        ContainerRuntimeError: the state folder cannot be used.
    """
    catalogue = ImageCatalogue(strict=strict_versions)
    if choice == "process":
        return _choose_local(state_dir, catalogue, "Containers run as local processes, as asked for.")
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
    # Imported here: with --runtime process nobody waits for the Docker client, or needs it.
    from container_runtime.docker.engine import DockerEngine
    from container_runtime.docker.local_images import missing_images

    try:
        missing = missing_images(catalogue)
    except EngineUnavailableError as error:
        if choice == "docker":
            raise
        if isinstance(error, EngineRefusedError):
            return _choose_local(state_dir, catalogue, f"Containers run as local processes, not on Docker. {error}")
        return _choose_local(state_dir, catalogue, "No Docker engine answers: containers run as local processes.")
    if missing and choice == "docker":
        raise ImageNotFoundError(f"The engine has no image {', '.join(missing)}: run {_BUILD} first.")
    if missing:
        reason = f"A Docker engine answers, but images are missing ({_BUILD}): containers run as local processes."
        return _choose_local(state_dir, catalogue, reason)
    why = "as asked for" if choice == "docker" else "an engine answers and has the images"
    sidecars = None if allow_internet else state_dir / "sidecars"
    engine = DockerEngine(name_instance(state_dir), catalogue, user, sidecars)
    return ChosenRuntime(engine, f"Containers run on Docker: {why}. They reach {reach}.")


def name_instance(state_dir: Path) -> str:
    """Instance id of the emulator that keeps its state in ``state_dir``: 12 hexadecimal digits."""
    return hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:12]


def _choose_local(state_dir: Path, catalogue: ImageCatalogue, reason: str) -> ChosenRuntime:
    runtime = LocalProcesses(state_dir / "containers", catalogue)
    if not runtime.grant.mounts:
        reason += (
            f" The kernel grants them no namespaces ({runtime.grant.refusal}): they find no /opt/ml, but its place in "
            "SAGEMAKER_BASE_DIR, and cannot be without a network."
        )
    return ChosenRuntime(runtime, reason)
