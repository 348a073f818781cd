"""Virtual environments for images whose requirements the emulator's own interpreter does not meet.

``python -m container_runtime.process.environments [--list] [NAME ...]`` builds them ahead; otherwise the first
container of an image builds its own when it starts (``environment_start.py``). A Docker image has its environment
inside.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from container_runtime.images.catalogue import DEFINITIONS_FOLDER, ImageCatalogue
from container_runtime.images.wheelhouse import PYTHON_VERSION, fetch_wheels, key_of_requirements
from container_runtime.runtime import ContainerRuntimeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from container_runtime.images.catalogue import ImageDefinition

CHECKOUT = DEFINITIONS_FOLDER.parent
CACHE = CHECKOUT / ".cache"
_FORM = "1"
"""To be raised when environments are made in another way."""

_COMPLETE = "complete"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:==(?P<pinned>[\w.]+))?")


class EnvironmentBuildError(ContainerRuntimeError):
    """An environment could not be made; the text says why."""


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


def locate_environment(definition: ImageDefinition, cache: Path = CACHE) -> OwnEnvironment:
    """Where the environment of an image is, or will be."""
    parts = [_FORM, key_of_requirements(definition.requirements), platform.python_implementation(), str(CHECKOUT)]
    parts += [str(definition.with_smdebug), *(f"{link}={target}" for link, target in sorted(definition.links.items()))]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return OwnEnvironment(cache / "venvs" / f"{definition.name}-{key}")


def build_environment(
    definition: ImageDefinition, cache: Path = CACHE, say: Callable[[str], None] = lambda _text: None
) -> OwnEnvironment:
    """Return the environment of an image, built if it is not there yet.

    Processes that ask at once build it once. What a build that was killed has left is thrown away by the next.

    Args:
        definition: of the image.
        cache: where environments and wheels are kept.
        say: told what goes on.

    Raises:
        ContainerRuntimeError: pip cannot fetch or install what it needs, or the cache cannot be written.
    """
    environment = locate_environment(definition, cache)
    if environment.is_complete:
        return environment
    try:
        with _only_builder(environment, say):
            if not environment.is_complete:
                _build(environment, definition, cache, say)
    except OSError as exc:
        raise EnvironmentBuildError(f"{environment.folder} cannot be made: {exc}") from exc
    return environment


def _build(environment: OwnEnvironment, definition: ImageDefinition, cache: Path, say: Callable[[str], None]) -> None:
    started = time.monotonic()
    shutil.rmtree(environment.folder, ignore_errors=True)
    say(f"building the environment of {definition.name}, once: fetching {', '.join(definition.requirements)}")
    wheels = fetch_wheels(definition.requirements, cache)
    say("installing them")
    # A virtual environment cannot be moved: it is built where it stays, and the last file says that it is whole.
    _run([_find_interpreter(), "-m", "venv", "--without-pip", str(environment.folder)])
    # pip runs from its own wheel; none needs to be there before.
    pip = next(wheels.glob("pip-*.whl")) / "pip"
    _run(
        [
            *(str(environment.python), str(pip), "install", "--quiet", "--disable-pip-version-check"),
            *("--no-cache-dir", "--no-index", "--find-links", str(wheels)),
            *("--requirement", str(wheels / "requirements.txt")),
        ]
    )
    _link(environment, definition)
    (environment.folder / _COMPLETE).touch()
    say(f"the environment is ready after {time.monotonic() - started:.0f} s: {environment.folder}")


def _link(environment: OwnEnvironment, definition: ImageDefinition) -> None:
    site_packages = environment.site_packages
    if definition.with_smdebug:
        # The checkout's, as for the emulator's own interpreter: a change of it needs no new environment.
        (site_packages / "smdebug").symlink_to(CHECKOUT / "smdebug")
        (site_packages / "smdebug_autoload.pth").symlink_to(CHECKOUT / "smdebug" / "autoload.pth")
    for link, pattern in definition.links.items():
        target = next(iter(sorted(site_packages.glob(pattern))), None)
        if target is None:
            raise EnvironmentBuildError(f"{definition.name}: {link} is to be a link to {pattern}, which is not there.")
        (site_packages / link).unlink(missing_ok=True)
        (site_packages / link).symlink_to(target)


def _find_interpreter() -> str:
    """This interpreter if it is of the version that the wheels are for, else the machine's one of that version."""
    if sys.version_info[:2] == tuple(int(part) for part in PYTHON_VERSION.split(".")):
        return sys.executable
    found = shutil.which(f"python{PYTHON_VERSION}")
    if found is None:
        raise EnvironmentBuildError(
            f"This image needs Python {PYTHON_VERSION}, and python{PYTHON_VERSION} is not on PATH: install it, or run "
            "the emulator with --runtime docker."
        )
    return found


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise EnvironmentBuildError(f"`{' '.join(command[:4])} …` failed:\n{last}")


@contextmanager
def _only_builder(environment: OwnEnvironment, say: Callable[[str], None]) -> Iterator[None]:
    environment.folder.parent.mkdir(parents=True, exist_ok=True)
    with environment.folder.with_name(f"{environment.folder.name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process builds this image's environment: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m container_runtime.process.environments",
        description="Build the environments of images that need one of their own in the process back end.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="image to build for; all when none is named")
    parser.add_argument("--list", action="store_true", help="show the environments and whether they are built")
    parsed = parser.parse_args(arguments)
    definitions = {definition.name: definition for definition in ImageCatalogue() if needs_environment(definition)}
    if unknown := set(parsed.names) - definitions.keys():
        parser.error(f"no such environment: {', '.join(sorted(unknown))}; there are {', '.join(sorted(definitions))}")
    try:
        for name in parsed.names or definitions:
            environment = locate_environment(definitions[name], CACHE)
            if not parsed.list:
                build_environment(definitions[name], CACHE, say=lambda text: print(text, flush=True))  # noqa: T201
            state = "built" if environment.is_complete else "not built"
            print(f"{name}: {state}, {environment.folder}")  # noqa: T201
    except ContainerRuntimeError as exc:
        print(exc, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
