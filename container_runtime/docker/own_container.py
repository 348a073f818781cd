"""Test that the engine and an emulator in a container have the same paths.

The engine mounts folders by their paths on its own machine. An emulator in a container passes it paths of the
container, so both have to be the same.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

import docker.errors

from container_runtime.docker.border import connect, translated
from container_runtime.runtime import ContainerRuntimeError

# The engine mounts files such as /etc/hosts from a folder with the container's id.
_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/")


def check_mounted_folder(folder: Path, mount_table: str | None = None) -> None:
    """Check that the engine has a folder at the same path as this process.

    Outside a container, and in one of another engine, there is nothing to check.

    Args:
        folder: folder whose subfolders are to be mounted into containers.
        mount_table: text of ``/proc/self/mountinfo``; read if None.

    Raises:
        ContainerRuntimeError: the folder is in this container only, or at another path; the message has the options of
            ``docker run`` that change this.
        EngineUnavailableError: the engine does not answer.
    """
    found = _OWN_ID.search(mount_table or Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    if found is None:
        return
    with closing(connect()) as api, translated("inspect this container"):
        try:
            mounts = api.inspect_container(found[1])["Mounts"]
        except docker.errors.NotFound:
            return
    there = find_engine_path(folder, mounts)
    if there == PurePosixPath(folder):
        return
    wanted = there or PurePosixPath("/srv/smdebug-emulator")
    where = f"is {there} there" if there else "is in no volume or folder of the engine's machine"
    raise ContainerRuntimeError(
        f"The emulator is in a container and its jobs are containers beside it, so the engine has to find the state "
        f"folder at the same path; {folder} {where}. Start it with -v {wanted}:{wanted} "
        f"-e SMDEBUG_EMULATOR_STATE_DIR={wanted}, or without the engine's socket."
    )


def find_engine_path(folder: Path, mounts: Iterable[Mapping[str, Any]]) -> PurePosixPath | None:
    """Return the path that a container's folder has on the engine's machine; None if it is in no mount.

    Args:
        folder: absolute path in the container.
        mounts: the container's mounts as the engine describes them.
    """
    own = PurePosixPath(folder)
    holding = [each for each in mounts if own.is_relative_to(each["Destination"])]
    if not holding:
        return None
    nearest = max(holding, key=lambda each: len(PurePosixPath(each["Destination"]).parts))
    return PurePosixPath(nearest["Source"], own.relative_to(nearest["Destination"]))
