"""Lock files of images: pinned package versions and wheel hashes.

There is one file for each environment, Python version and CPU architecture, next to the image's ``image.toml``. A
package is installed in an image only if its hash is in the file. ``lock_making.py`` creates the files.
"""

from collections.abc import Iterable
from pathlib import Path

from container_runtime.images.architecture import find_architecture
from container_runtime.images.catalogue import ImageDefinition
from container_runtime.runtime import WheelhouseError

LOCK = ".lock"
INSTALLER_MARK = " # installer"
"""End of the line of a package that is needed only to install the others."""

CPU_ONLY_MARK = " # for the processor"
"""End of the line of a CPU-only package. If pip finds it, it replaces the package's other line and all GPU packages."""

PLACEHOLDER_MARK = " # placeholder"
"""End of the line of a GPU package that is not fetched. A wheel of placeholders is built for it."""

_SIZE = "# To fetch: "
_HEADER = "# Made by `make lock` of: "


def locate_lock(definition: ImageDefinition, python: str, architecture: str = "") -> Path:
    """Return the path of an image's lock file for a Python version and an architecture, by default this machine's."""
    return definition.folder / f"{definition.name}-py{python}-{architecture or find_architecture()}{LOCK}"


def build_header(definition: ImageDefinition) -> str:
    """Return the first line of a lock file, which lists the requirements that it was made from."""
    return _HEADER + " ".join(sorted(definition.installed))


def build_size_line(size: int) -> str:
    """Return the line of a lock file that says how many bytes its packages have."""
    return f"{_SIZE}{size}"


def read_size(definition: ImageDefinition, python: str, architecture: str = "") -> int | None:
    """Return how many bytes are fetched for an image; None if that is not known."""
    path = locate_lock(definition, python, architecture)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((int(line.removeprefix(_SIZE)) for line in lines if line.startswith(_SIZE)), None)


def read_requirements(definition: ImageDefinition, python: str) -> tuple[str, ...]:
    """Return the requirements that pip installs in an image.

    These are the lines of its lock file, with hashes, or the image's requirements if there is no lock file.

    Raises:
        WheelhouseError: the lock file was made from different requirements.
    """
    path = locate_lock(definition, python)
    if not path.is_file():
        return definition.installed
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    if first != build_header(definition):
        raise WheelhouseError(f"{path} was not made of what image.toml requires now: run `make lock`.")
    return tuple(line for line in lines if not line.startswith(_SIZE))


def is_locked(requirements: Iterable[str]) -> bool:
    """Return whether these requirements are the lines of a lock file."""
    return any("--hash=" in line for line in requirements)
