"""Writable host folders of a container: initial content and ownership."""

import os
import shutil
from pathlib import Path

from container_runtime.docker.images.local_images import LocalImage
from container_runtime.images.own_packages import FOLDER, build_variables, make_own_packages
from container_runtime.runtime import ContainerStartError
from container_runtime.spec import ContainerSpec, Mount

DEFAULT_USER = (1000, 1000)
"""uid and gid of containers if the emulator runs as root: an ordinary user without special permissions."""

HOME = "/home/job"
_OWN_PACKAGES = f"/opt/{FOLDER}"
_ENVIRONMENT = "/opt/venv"
_LIBRARY = "python3.11"


def choose_user(user: tuple[int, int] | None) -> tuple[int, int]:
    """Return the uid and gid of containers.

    Without ``user``, these are the ones of this process, or ``DEFAULT_USER`` if this process runs as root. The
    emulator and its containers can then read and delete the files that the other wrote to a mount: root can read any
    user's files, and gives each container the ownership of the folders that it writes to.
    """
    return user or ((os.getuid(), os.getgid()) if os.getuid() else DEFAULT_USER)


def find_folders(spec: ContainerSpec, image: LocalImage, user: tuple[int, int]) -> tuple[list[Mount], dict[str, str]]:
    """Return all mounts and all environment variables of a container.

    Raises:
        ContainerStartError: the source folder of a mount does not exist.
    """
    for mount in spec.mounts:
        if not mount.source.is_dir():
            raise ContainerStartError(f"Container {spec.name}: the folder to mount, {mount.source}, is not there.")
    mounts = list(spec.mounts)
    if image.library is not None:
        mounts.append(image.library)
    if spec.scratch is not None:
        mounts += list_scratch_mounts(spec.scratch, has_environment=image.is_ours)
    return mounts, build_environment(spec, image, user)


def build_environment(spec: ContainerSpec, image: LocalImage, user: tuple[int, int]) -> dict[str, str]:
    """Return all environment variables of a container that its image does not set."""
    given = dict(spec.environment)
    if image.library is not None:
        path = given.get("PYTHONPATH", image.environment.get("PYTHONPATH", ""))
        given["PYTHONPATH"] = ":".join(filter(None, (image.library.target, path)))
    environment = dict(given)
    if user[0] != 0:
        # The image's password file does not list this user, so its home directory would be `/`.
        environment = {"HOME": "/tmp", "USER": str(user[0]), **given}  # noqa: S108 - inside the container
    if spec.scratch is not None:
        environment["HOME"] = given.get("HOME", HOME)
        if image.is_ours:
            environment["PATH"] = f"{given.get('PATH', image.path)}:{_OWN_PACKAGES}/bin"
            environment |= build_variables(_OWN_PACKAGES, given)
    return environment


def prepare_folders(spec: ContainerSpec, settings: str | None, user: tuple[int, int]) -> None:
    """Fill a container's scratch folder, and give its user the ownership of the folders that it writes to.

    Args:
        spec: spec of the container.
        settings: see ``LocalImages.read_environment_settings``.
        user: uid and gid that the container runs as.

    Raises:
        ContainerStartError: the folders cannot be written.
    """
    try:
        if spec.scratch is not None and settings is not None:
            fill_own_packages(spec.scratch, settings)
        give_folders(spec, user)
    except OSError as exc:
        raise ContainerStartError(f"Container {spec.name}: its folders cannot be filled: {exc}") from exc


def list_scratch_mounts(scratch: Path, *, has_environment: bool) -> list[Mount]:
    """Create the folders in ``scratch`` and return their mounts.

    Args:
        scratch: see ``ContainerSpec``.
        has_environment: whether the image is one of this project, with a virtual environment that pip installs on top
            of.
    """
    targets = {"/tmp": "tmp", "/var/tmp": "tmp", HOME: "home"}  # noqa: S108 - inside the container
    targets |= {_OWN_PACKAGES: FOLDER} if has_environment else {}
    for name in targets.values():
        (scratch / name).mkdir(parents=True, exist_ok=True)
    # The usual mode of /tmp. Some programs refuse to use a /tmp that other users cannot write to.
    (scratch / "tmp").chmod(0o1777)
    return [Mount(scratch / name, target) for target, name in targets.items()]


def fill_own_packages(scratch: Path, environment_settings: str) -> None:
    """Create the virtual environment that pip installs into, on top of the one of an image of this project.

    Args:
        scratch: see ``ContainerSpec``.
        environment_settings: content of the image's ``/opt/venv/pyvenv.cfg``.
    """
    # An earlier start of the same container that was interrupted may have left part of it.
    shutil.rmtree(scratch / FOLDER)
    lines = (line.partition("=") for line in environment_settings.splitlines())
    settings = {name.strip(): value.strip() for name, _, value in lines}
    below = [f"{_ENVIRONMENT}/lib/{_LIBRARY}/site-packages"]
    make_own_packages(scratch / FOLDER, f"{_ENVIRONMENT}/bin/python", settings["home"], _LIBRARY, below)


def give_folders(spec: ContainerSpec, user: tuple[int, int]) -> None:
    """Give a container's user the ownership of the folders that it writes to, if this process is root."""
    if os.getuid() == 0:
        for mount in spec.mounts:
            if not mount.read_only:
                _give(mount.source, user)
        if spec.scratch is not None:
            _give(spec.scratch, user)


def _give(folder: Path, user: tuple[int, int]) -> None:
    """Change the owner of a folder and of all its content.

    Symbolic links are not followed. A file with a second name keeps its owner: it may be a file of the emulator, and
    the container could then write to it.
    """
    for _, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if (found.st_uid, found.st_gid) != user and (found.st_nlink == 1 or name in folders):
                os.chown(name, *user, dir_fd=descriptor, follow_symlinks=False)
    os.chown(folder, *user, follow_symlinks=False)
