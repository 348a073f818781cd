"""Virtual environments of images, for the process back end.

An image needs its own where the emulator's interpreter does not meet its requirements.

The first container of an image builds its own when it starts (``environment_start.py``), unless it was built ahead. A
Docker image has its environment inside.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import shutil
import site
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from container_runtime.file_lock import hold_lock
from container_runtime.images.installation import ROOT, collect_smdebug, locate_cache
from container_runtime.images.lock_files import is_locked, read_requirements
from container_runtime.images.own_packages import FOLDER, make_own_packages
from container_runtime.images.wheelhouse import fetch_wheels, key_of_requirements
from container_runtime.runtime import EnvironmentBuildError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from container_runtime.images.catalogue import ImageDefinition

_FORM = "2"
"""To be raised when environments are made in another way."""

_COMPLETE = "complete"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:==(?P<pinned>[\w.]+))?")


@dataclass(frozen=True, slots=True)
class OwnEnvironment:
    """The virtual environment of one image, built or not.

    Attributes:
        folder: its root; the name holds a key of all that goes in.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"

    @property
    def is_complete(self) -> bool:
        """Whether it was built to the end."""
        return (self.folder / _COMPLETE).exists()

    @property
    def site_packages(self) -> Path:
        """Where its packages are.

        Raises:
            EnvironmentBuildError: it has no such folder.
        """
        found = next((self.folder / "lib").glob("python*/site-packages"), None)
        if found is None:
            raise EnvironmentBuildError(f"{self.folder} is no virtual environment: it has no site-packages.")
        return found


def needs_environment(definition: ImageDefinition) -> bool:
    """Whether this interpreter lacks what an image requires, or has another version than the one that it pins."""
    return not all(_is_met(requirement) for requirement in definition.requirements)


@lru_cache(maxsize=256)
def _is_met(requirement: str) -> bool:
    found = _REQUIREMENT.match(requirement)
    if found is None:
        return False
    try:
        installed = importlib.metadata.version(found["name"])
    except importlib.metadata.PackageNotFoundError:
        return False
    # A wheel's variant, as in 2.13.0+cpu, is no part of what is pinned.
    return found["pinned"] is None or installed.partition("+")[0] == found["pinned"]


def locate_environment(definition: ImageDefinition, cache: Path | None = None) -> OwnEnvironment:
    """Return where the environment of an image is, or will be."""
    python = _choose_version(definition)
    requirements_key = key_of_requirements(read_requirements(definition, python), python)
    parts = [_FORM, requirements_key, platform.python_implementation(), str(ROOT), str(definition.with_smdebug)]
    parts += [
        *(f"{link}={target}" for link, target in sorted(definition.links.items())),
        *map(str, definition.programs),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return OwnEnvironment((cache or locate_cache()) / "venvs" / f"{definition.name}-{key}")


def build_environment(
    definition: ImageDefinition, cache: Path | None = None, say: Callable[[str], None] = lambda _text: None
) -> OwnEnvironment:
    """Return the environment of an image, built if it is not there yet.

    Processes that ask at once build it once. What a build that was killed has left is thrown away by the next.

    Args:
        definition: of the image.
        cache: where environments and wheels are kept; this installation's own cache when not given.
        say: told what goes on.

    Raises:
        ContainerRuntimeError: pip cannot fetch or install what it needs, or the cache cannot be written.
    """
    cache = cache or locate_cache()
    environment = locate_environment(definition, cache)
    lock = environment.folder.with_name(f"{environment.folder.name}.lock")
    if environment.is_complete:
        return environment
    try:
        with hold_lock(lock, lambda: say("another process builds this image's environment: waiting for it")):
            if not environment.is_complete:
                _build(environment, definition, cache, say)
    except OSError as exc:
        raise EnvironmentBuildError(f"{environment.folder} cannot be made: {exc}") from exc
    return environment


def lay_own_packages(scratch: Path, shared: OwnEnvironment | None) -> None:
    """Make a container's own packages in its folder, over an environment that is complete, or this interpreter's."""
    if shared is None:
        python, below = Path(sys.executable), [*site.getsitepackages(), site.getusersitepackages()]
        library = f"python{sys.version_info.major}.{sys.version_info.minor}"
    else:
        python, below = shared.python, [str(shared.site_packages)]
        library = shared.site_packages.parent.name
    make_own_packages(scratch / FOLDER, str(python), str(python.resolve().parent), library, below)


def _build(environment: OwnEnvironment, definition: ImageDefinition, cache: Path, say: Callable[[str], None]) -> None:
    started = time.monotonic()
    shutil.rmtree(environment.folder, ignore_errors=True)
    say(f"building the environment of {definition.name}, once: fetching {', '.join(definition.requirements)}")
    requirements = read_requirements(definition, _choose_version(definition))
    if not is_locked(requirements):
        say(f"there is no lock file for Python {_choose_version(definition)}: pip chooses the versions, unchecked")
    wheels = fetch_wheels(requirements, cache, _choose_version(definition))
    say("installing them")
    # A virtual environment cannot be moved: it is built where it stays, and the last file says that it is whole.
    _run([_find_interpreter(_choose_version(definition)), "-m", "venv", "--without-pip", str(environment.folder)])
    # pip runs from its own wheel; none needs to be there before.
    pip = next(wheels.glob("pip-*.whl")) / "pip"
    _run(
        [
            *(str(environment.python), str(pip), "install", "--quiet", "--disable-pip-version-check"),
            *("--no-cache-dir", "--no-index", "--find-links", str(wheels)),
            *(("--no-deps", "--require-hashes") if is_locked(requirements) else ()),
            *("--requirement", str(wheels / "requirements.txt")),
        ]
    )
    _link(environment, definition)
    (environment.folder / _COMPLETE).touch()
    say(f"the environment is ready after {time.monotonic() - started:.0f} s: {environment.folder}")


def _link(environment: OwnEnvironment, definition: ImageDefinition) -> None:
    site_packages = environment.site_packages
    # Linked, not copied: a change of a checkout needs no new environment.
    contents = collect_smdebug() if definition.with_smdebug else {}
    contents |= {f"{definition.place}/{program.name}": program for program in definition.programs}
    for name, content in contents.items():
        path = site_packages / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)
    for link, pattern in definition.links.items():
        target = next(iter(sorted(site_packages.glob(pattern))), None)
        if target is None:
            raise EnvironmentBuildError(f"{definition.name}: {link} is to be a link to {pattern}, which is not there.")
        (site_packages / link).unlink(missing_ok=True)
        (site_packages / link).symlink_to(target)


def _choose_version(definition: ImageDefinition) -> str:
    """Return the version of Python for an image's environment: this one's, unless its wheels are for one only."""
    return definition.python or f"{sys.version_info.major}.{sys.version_info.minor}"


def _find_interpreter(version: str) -> str:
    """Return this interpreter if it is of the version, else the machine's one."""
    if sys.version_info[:2] == tuple(int(part) for part in version.split(".")):
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise EnvironmentBuildError(
            f"This image needs Python {version}, and python{version} is not on PATH: install it, or run the emulator "
            "with --runtime docker."
        )
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise EnvironmentBuildError(f"`{' '.join(command[:4])} …` failed:\n{last}")
