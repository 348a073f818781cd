"""Back end of a Docker engine, as its entry point has it."""

from collections.abc import Callable, Collection
from contextlib import ExitStack, closing

from container_runtime.back_ends import BackEnd, ChosenRuntime, RuntimeOptions
from container_runtime.docker.border import connect
from container_runtime.docker.engine import DockerEngine
from container_runtime.docker.images.images_in_place import ImagesInPlace
from container_runtime.docker.images.local_images import missing_images
from container_runtime.docker.own_container import check_mounted_folder
from container_runtime.docker.spares.spares import SpareOptions
from container_runtime.images.own_images import check_repositories
from container_runtime.machine import count_memory_bytes
from container_runtime.runtime import ImageNotFoundError


def open_docker(options: RuntimeOptions) -> ChosenRuntime:
    """Open the back end. Its containers are labelled with an id derived from the state folder's path.

    Raises:
        EngineUnavailableError: no engine answers.
        ImageNotFoundError: this project's images are not built.
        ContainerRuntimeError: the engine cannot find the state folder.
    """
    catalogue = options.open_catalogue()
    state_dir = options.state_dir.absolute()
    library = state_dir / "library" if options.adds_smdebug else None
    sidecars = None if options.allow_internet else options.state_dir / "sidecars"
    most = 0 if options.warm is None else options.warm_memory_bytes
    spares = SpareOptions(state_dir / "spares", count_memory_bytes() // 4 if most is None else most)
    with ExitStack() as on_failure:
        api = on_failure.enter_context(closing(connect()))
        if missing := missing_images(api, catalogue):
            raise ImageNotFoundError(
                f"The engine has no image {', '.join(missing)}: run smdebug-emulator images build first."
            )
        check_mounted_folder(options.state_dir)
        check_repositories(options.own_images, catalogue)
        own_images = ImagesInPlace(options.own_images, library)
        engine = DockerEngine(options.instance_id, catalogue, options.user, sidecars, spares, own_images, api)
        on_failure.pop_all()
    why = options.why or "as requested"
    return ChosenRuntime(engine, f"Containers run on Docker: {why}. They reach {options.reach}.")


def build_missing_images(names: Collection[str], report: Callable[[str, str], None]) -> list[str]:
    """Build the images that are not up to date; see ``BackEnd.build_images``."""
    # A local import, because an emulator that starts builds none.
    from container_runtime.docker.images.image_build import build_images

    return build_images(names, report)


BACK_END = BackEnd(open_docker, build_missing_images)
"""Containers of the Docker engine that ``DOCKER_HOST`` names, or the local one."""
