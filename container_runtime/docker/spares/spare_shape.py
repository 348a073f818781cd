"""Shape of a spare container: what is fixed when it is created."""

from pathlib import PurePosixPath
from typing import NamedTuple

from container_runtime.docker.images.local_images import LocalImage
from container_runtime.images.catalogue import ImageDefinition, local_name
from container_runtime.spec import ContainerSpec
from container_runtime.warm.warm_interpreter import find_changed_variable

PYTHON = "/opt/venv/bin/python"
_PROGRAMS = "/opt/venv/bin"
# Variables by which a shell or Python finds programs and files before any module is imported.
_FOUND_BY = ("PATH", "HOME")


class Shape(NamedTuple):
    """What the engine cannot change in a container that exists; spare containers of one shape replace each other.

    Attributes:
        image: name by which the engine runs the image.
        identity: id of the image's newest build.
        targets: paths of the mounts.
        read_only: those of them that the container may not write to.
        has_scratch: whether /tmp, the home directory and pip's packages are in a folder of the host.
        hostname: host name, or None for any.
        read_only_root: see ``ContainerSpec``.
        shm_bytes: see ``ContainerSpec``.
    """

    image: str
    identity: str
    targets: tuple[str, ...]
    read_only: tuple[str, ...]
    has_scratch: bool
    hostname: str | None
    read_only_root: bool
    shm_bytes: int | None


def find_shape(spec: ContainerSpec, image: LocalImage, identity: str) -> Shape:
    """Return the shape of the spare containers that can become the container of ``spec``."""
    return Shape(
        image.resolved.local,
        identity,
        tuple(mount.target for mount in spec.mounts),
        tuple(mount.target for mount in spec.mounts if mount.read_only),
        spec.scratch is not None,
        spec.hostname,
        spec.read_only_root,
        spec.shm_bytes,
    )


def has_spares(image: LocalImage, definition: ImageDefinition | None) -> bool:
    """Return whether there are spare containers of an image: one of this project with modules to import."""
    return definition is not None and bool(definition.warm_modules) and image.resolved.local == local_name(definition)


def find_obstacle(
    spec: ContainerSpec, image: LocalImage, definition: ImageDefinition, *, hands_gpus: bool = False
) -> str | None:
    """Return why no spare container can become the container of ``spec``, or None.

    Args:
        spec: the container that is needed.
        image: its image.
        definition: the definition of the image.
        hands_gpus: whether the engine gives GPUs to containers that ask for them.
    """
    if spec.gpus and hands_gpus:
        return "it has GPUs"
    if spec.isolated:
        return "it has no network"
    if spec.network is not None:
        return "its job has several hosts"
    if shared := [mount.target for mount in spec.mounts if mount.read_only and not mount.exclusive]:
        return f"{shared[0]} is read-only and may be another container's, too"
    if hiding := [mount.target for mount in spec.mounts if PurePosixPath(PYTHON).is_relative_to(mount.target)]:
        return f"{hiding[0]} hides the image's interpreter"
    if find_program(image.find_argv(spec), definition) is None:
        return f"its program is {' '.join(image.find_argv(spec))[:60]!r}"
    variables = {**image.environment, **spec.environment}
    changed = find_changed_variable(variables, image.environment, (*definition.warm_variables, *_FOUND_BY))
    if changed is not None:
        return f"its environment sets {changed}, which is read when modules are imported"
    return None


def find_program(argv: tuple[str, ...], definition: ImageDefinition) -> list[str] | None:
    """Return the command that an interpreter which has started can become, or None.

    This is ``python -m MODULE``, ``python -c CODE`` or a program of the image that is a script.
    """
    if not argv:
        return None
    if argv[0] in definition.commands:
        return [PYTHON, locate_program(argv[0]), *argv[1:]]
    options = argv[2:] if argv[1:2] == ("-P",) else argv[1:]
    if argv[0] in ("python", PYTHON) and len(options) > 1 and options[0] in ("-m", "-c"):
        # With -P, Python would not look for the code's imports in the current folder.
        return None if options[0] == "-c" and len(options) < len(argv) - 1 else [PYTHON, *argv[1:]]
    return None


def locate_program(name: str) -> str:
    """Return the path of a program that pip has installed in an image of this project."""
    return f"{_PROGRAMS}/{name}"
