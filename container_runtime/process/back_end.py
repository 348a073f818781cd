"""Back end of local processes, as its entry point has it."""

from collections.abc import Callable, Collection
from functools import partial

from container_runtime.back_ends import BackEnd, ChosenRuntime, RuntimeOptions, Traits
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment, locate_environment, needs_environment
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions


def open_processes(options: RuntimeOptions) -> ChosenRuntime:
    """Open the back end. It keeps its containers in the state folder.

    Raises:
        ContainerRuntimeError: the state folder cannot be used.
    """
    options.refuse_own_images("local processes run in this machine's Python, not in an image")
    warm = None if options.warm is None else WarmOptions(options.warm)
    runtime = LocalProcesses(options.state_dir / "containers", options.open_catalogue(), warm=warm)
    reason = options.why or "Containers run as local processes, as requested."
    if not runtime.grant.mounts:
        reason += (
            f" The kernel grants them no namespaces ({runtime.grant.refusal}): they find no /opt/ml, but its place in "
            "SAGEMAKER_BASE_DIR, and cannot be without a network."
        )
    return ChosenRuntime(runtime, reason)


def build_environments(names: Collection[str], report: Callable[[str, str], None]) -> list[str]:
    """Build the virtual environments that are missing; see ``BackEnd.build_images``."""
    built = []
    for definition in ImageCatalogue().select(names):
        if needs_environment(definition) and not locate_environment(definition).is_complete:
            build_environment(definition, say=partial(report, definition.name))
            built.append(definition.name)
    return built


BACK_END = BackEnd(
    open_processes,
    build_environments,
    demo_images=("pytorch-training",),
    traits=Traits(
        has_images=False,
        resolves_names=False,
        may_refuse_isolation=True,
        counts_network=False,
    ),
)
"""Containers as processes of this machine."""
