"""Lock files of images: pinned package versions and wheel hashes.

One file for each environment, version of Python and kind of processor, beside the image's ``image.toml``. Nothing is
installed in an image whose bytes are not those that the file names. ``lock_making.py`` makes them.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from container_runtime.runtime import WheelhouseError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from container_runtime.images.catalogue import ImageDefinition

LOCK = ".lock"
INSTALLER_MARK = " # installer"
"""At the end of the line that names what installs the others, where none of them needs it."""

CPU_ONLY_MARK = " # for the processor"
"""At the end of a line that takes the place of the package's other one, and of all for GPUs, where pip finds it."""

_HEADER = "# Made by `make lock` of: "


def locate_lock(definition: ImageDefinition, python: str) -> Path:
    """Where the lock file of an image's environment is, for one version of Python on this machine's processor."""
    return definition.folder / f"{definition.name}-py{python}-{platform.machine()}{LOCK}"


def build_header(definition: ImageDefinition) -> str:
    """First line of a lock file: what it was made of."""
    return _HEADER + " ".join(sorted(definition.requirements))


def read_requirements(definition: ImageDefinition, python: str) -> tuple[str, ...]:
    """Return what pip installs in an image: lines with hashes where there is a lock file, else what is required.

    Raises:
        WheelhouseError: the lock file was made of other requirements.
    """
    path = locate_lock(definition, python)
    if not path.is_file():
        return definition.requirements
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    if first != build_header(definition):
        raise WheelhouseError(f"{path} was not made of what image.toml requires now: run `make lock`.")
    return tuple(lines)


def is_locked(requirements: Iterable[str]) -> bool:
    """Whether these are lines of a lock file."""
    return any("--hash=" in line for line in requirements)
