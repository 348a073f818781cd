"""Environments and wheels that the cache holds, and their removal."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from container_runtime.file_lock import hold_lock
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import COMPLETE, locate_environment
from container_runtime.runtime import ContainerRuntimeError


class StoredFolder(NamedTuple):
    """A folder of the cache.

    Attributes:
        folder: where it is.
        image: the image whose environment it is; empty for wheels.
        is_outdated: whether no image of this installation uses it any more.
        size: what it takes on the disk, in bytes.
    """

    folder: Path
    image: str
    is_outdated: bool
    size: int


def list_environments(catalogue: ImageCatalogue, cache: Path) -> list[StoredFolder]:
    """List the environments of images, those of earlier requirements too, the largest first."""
    wanted = {locate_environment(definition, cache).folder for definition in catalogue}
    names = sorted((definition.name for definition in catalogue), key=len, reverse=True)
    found = []
    for folder in sorted((cache / "venvs").glob("*")):
        # The key after the name has no hyphen; other environments of a checkout have other names.
        image = next((name for name in names if folder.name.rpartition("-")[0] == name), None)
        if image is not None and folder.is_dir():
            found.append(StoredFolder(folder, image, folder not in wanted, measure_folder(folder)))
    return sorted(found, key=lambda each: -each.size)


def remove_environment(stored: StoredFolder) -> None:
    """Remove an environment, unless a process runs in it.

    Raises:
        ContainerRuntimeError: a process does, or the folder cannot be removed.
    """
    with hold_lock(stored.folder.with_name(f"{stored.folder.name}.lock")):
        if (user := _find_user(stored.folder)) is not None:
            raise ContainerRuntimeError(
                f"The environment {stored.folder} is used by process {user}: stop that job, or the emulator whose warm "
                "interpreter it is, first."
            )
        # First the file that marks it complete: if the removal is interrupted, the next job builds it again.
        remove_folder(stored.folder, first=COMPLETE)


def remove_folder(folder: Path, *, first: str | None = None) -> None:
    """Remove a folder of the cache.

    Args:
        folder: the folder; it may be missing.
        first: a file in it that is removed before all others.

    Raises:
        ContainerRuntimeError: it cannot be removed.
    """
    try:
        if first is not None:
            (folder / first).unlink(missing_ok=True)
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ContainerRuntimeError(f"{folder} cannot be removed: {exc.strerror}.") from exc


def measure_folder(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk; what is linked to is not counted."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).lstat().st_blocks * 512
            except OSError:
                continue  # it was removed meanwhile
    return total


def _find_user(folder: Path) -> int | None:
    """Return a process whose program lies in the folder, or that has one of its libraries open."""
    inside = os.fsencode(folder) + b"/"
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if inside in (process / "cmdline").read_bytes() or inside in (process / "maps").read_bytes():
                return int(process.name)
        except OSError:
            continue  # it ended, or belongs to somebody else
    return None
