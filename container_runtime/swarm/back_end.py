"""Back end of a Docker Swarm, as its entry point has it."""

from collections.abc import Iterator

from container_runtime.back_ends import BackEnd, ChosenRuntime, RuntimeOptions, Traits
from container_runtime.docker.images.image_build import build_images
from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.engine import SwarmEngine
from container_runtime.swarm.survey import survey


def open_swarm(options: RuntimeOptions) -> ChosenRuntime:
    """Open the back end. Without a shared folder, files of jobs are copied to the nodes and back.

    Raises:
        EngineUnavailableError: no engine answers, or the engine is not a Swarm manager.
        ImageNotFoundError: the image of the rules is not built.
        ContainerRuntimeError: no node accepts tasks, or the shared folder does not contain the folders of jobs.
    """
    options.refuse_own_images("the nodes of a Swarm get this project's images only")
    shared = options.shared_folder
    if shared is not None and not options.state_dir.is_relative_to(shared):
        raise ContainerRuntimeError(
            f"--shared-folder {shared}: the folders of jobs are in {options.state_dir}, which is not in it. Give a "
            "--state-dir below it, or no --shared-folder: files are then carried to the nodes and from them."
        )
    swarm = SwarmEngine(
        options.instance_id,
        options.state_dir / "swarm",
        options.open_catalogue(),
        options.user,
        allow_internet=options.allow_internet,
        address=options.address,
        registry=options.registry,
        carry=shared is None,
        lost=options.lost,
    )
    number = swarm.count_nodes()
    nodes = "the only node" if number == 1 else f"the {number} nodes"
    why = options.why or "as requested"
    reason = f"Containers run on {nodes} of a Swarm, {why}. They reach {options.reach}."
    return ChosenRuntime(swarm, reason, swarm.describe)


def survey_nodes(options: RuntimeOptions, is_running: bool) -> Iterator[tuple[str, str, str]]:
    """Check the nodes; see ``BackEnd.survey``. Without a running emulator, agents are started for it."""
    yield from survey(options.state_dir / "swarm", options.registry, start_agents=not is_running)


BACK_END = BackEnd(
    open_swarm,
    build_images,
    survey=survey_nodes,
    # A Swarm has a network for each task, and gives it its address when it is made.
    traits=Traits(knows_hosts_early=False, isolated_interfaces=("lo", "eth0")),
)
"""Containers on the nodes of the Swarm whose manager ``DOCKER_HOST`` names, or the local engine is."""
