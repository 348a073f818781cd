"""Virtual environments of images, for the process back end.

An image needs a virtual environment if the emulator's interpreter does not meet its requirements.

The first container of the image builds the environment when it starts (``environment_start.py``), unless it was built
in advance. A Docker image contains its environment.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import site
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from container_runtime.file_lock import hold_lock
from container_runtime.images.build_record import describe_build, record_build
from container_runtime.images.catalogue import ImageDefinition
from container_runtime.images.installation import ROOT, collect_smdebug, locate_cache
from container_runtime.images.lock_files import is_locked, read_requirements, read_size
from container_runtime.images.own_packages import FOLDER, make_own_packages
from container_runtime.images.wheelhouse import fetch_wheels, key_of_requirements
from container_runtime.runtime import EnvironmentBuildError

BUILT_IN_VARIABLE = "SMDEBUG_EMULATOR_ENVIRONMENTS"
"""Variable of a folder whose environments are used before those of the cache: in the emulator's image."""

_FORM = "2"
"""Version of the build procedure, a part of the key. Increase it when environments are built in a different way."""

COMPLETE = "complete"
"""The file that marks an environment as complete."""
_SILENT_SECONDS = 30.0
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:==(?P<pinned>[\w.]+))?")


class OwnEnvironment(NamedTuple):
    """The virtual environment of one image, built or not.

    Attributes:
        folder: root of the environment. Its name contains a hash of everything that the environment is built from.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """The folder of its programs."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"

    @property
    def is_complete(self) -> bool:
        """Whether its build has finished."""
        return (self.folder / COMPLETE).exists()

    @property
    def site_packages(self) -> Path:
        """The folder of its packages.

        Raises:
            EnvironmentBuildError: the environment has no such folder.
        """
        found = next((self.folder / "lib").glob("python*/site-packages"), None)
        if found is None:
            raise EnvironmentBuildError(f"{self.folder} is not a virtual environment: it has no site-packages.")
        return found


def needs_environment(definition: ImageDefinition) -> bool:
    """Return whether this interpreter lacks a package that an image requires, or has a version other than pinned."""
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
    # The pinned version does not include the variant of a wheel, as in 2.13.0+cpu.
    return found["pinned"] is None or installed.partition("+")[0] == found["pinned"]


def locate_environment(definition: ImageDefinition, cache: Path | None = None) -> OwnEnvironment:
    """Return the environment of an image, which may not be built yet."""
    python = _choose_version(definition)
    requirements_key = key_of_requirements(read_requirements(definition, python), python)
    parts = [_FORM, requirements_key, platform.python_implementation(), str(ROOT), str(definition.with_smdebug)]
    parts += [
        *(f"{link}={target}" for link, target in sorted(definition.links.items())),
        *map(str, definition.programs),
    ]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    name = f"{definition.name}-{key}"
    built_in = os.environ.get(BUILT_IN_VARIABLE)
    if built_in and (found := OwnEnvironment(Path(built_in, "venvs", name))).is_complete:
        return found
    return OwnEnvironment((cache or locate_cache()) / "venvs" / name)


def locate_own_environment(definition: ImageDefinition, cache: Path) -> OwnEnvironment | None:
    """Return the environment of an image, built or not; None if the image runs with this interpreter."""
    return locate_environment(definition, cache) if needs_environment(definition) else None


def describe_requirements(definition: ImageDefinition) -> tuple[str, ...]:
    """Return what the environment of an image is built from: the lines of its lock file, or its requirements."""
    return read_requirements(definition, _choose_version(definition))


def build_environment(
    definition: ImageDefinition,
    cache: Path | None = None,
    say: Callable[[str], None] = lambda _text: None,
    *,
    compiled: bool = True,
) -> OwnEnvironment:
    """Return the environment of an image, and build it first if necessary.

    Concurrent processes build it only once. The next build removes what an interrupted build has left.

    Args:
        definition: definition of the image.
        cache: folder for environments and wheels. The default is the cache of this installation.
        say: called with progress messages.
        compiled: whether all packages are compiled. Who waits for the build compiles what it imports, in a fifth of the
            time.

    Raises:
        ContainerRuntimeError: pip cannot fetch or install the requirements, or the cache cannot be written.
    """
    cache = cache or locate_cache()
    environment = locate_environment(definition, cache)
    lock = environment.folder.with_name(f"{environment.folder.name}.lock")
    if environment.is_complete:
        return environment
    try:
        with hold_lock(lock, lambda: say("another process builds this image's environment: waiting for it")):
            if not environment.is_complete:
                _build(environment, definition, cache, say, compiled=compiled)
    except OSError as exc:
        raise EnvironmentBuildError(f"{environment.folder} cannot be made: {exc}") from exc
    return environment


def lay_own_packages(scratch: Path, shared: OwnEnvironment | None) -> None:
    """Create a container's own packages folder, on top of a built environment or, without one, this interpreter's."""
    if shared is None:
        python, below = Path(sys.executable), [*site.getsitepackages(), site.getusersitepackages()]
        library = f"python{sys.version_info.major}.{sys.version_info.minor}"
    else:
        python, below = shared.python, [str(shared.site_packages)]
        library = shared.site_packages.parent.name
    make_own_packages(scratch / FOLDER, str(python), str(python.resolve().parent), library, below)


def _build(
    environment: OwnEnvironment, definition: ImageDefinition, cache: Path, say: Callable[[str], None], *, compiled: bool
) -> None:
    started = time.monotonic()
    shutil.rmtree(environment.folder, ignore_errors=True)
    size = read_size(definition, _choose_version(definition))
    estimate = "" if size is None else f" {size / 1e6:.0f} MB (some {size * 3.5 / 1e9:.1f} GB of disk):"
    requirements = read_requirements(definition, _choose_version(definition))
    say(f"building the environment of {definition.name}, once: fetching{estimate} {', '.join(definition.installed)}")
    say(f"what it takes: {describe_build(cache, 'process', definition, requirements)}")
    if not is_locked(requirements):
        say(f"there is no lock file for Python {_choose_version(definition)}: pip chooses the versions, unchecked")
    with _repeating("still fetching", say):
        wheels = fetch_wheels(requirements, cache, _choose_version(definition))
    say("installing them")
    # A virtual environment cannot be moved, so it is built in its final location. The last file marks it complete.
    _run([_find_interpreter(_choose_version(definition)), "-m", "venv", "--without-pip", str(environment.folder)])
    # pip runs from its wheel, so it need not be installed.
    pip = next(wheels.glob("pip-*.whl")) / "pip"
    _run(
        [
            *(str(environment.python), str(pip), "install", "--quiet", "--disable-pip-version-check"),
            *("--no-cache-dir", "--no-index", "--find-links", str(wheels)),
            *(() if compiled else ("--no-compile",)),
            *(("--no-deps", "--require-hashes") if is_locked(requirements) else ()),
            *("--requirement", str(wheels / "requirements.txt")),
        ]
    )
    _link(environment, definition)
    (environment.folder / COMPLETE).touch()
    record_build(cache, "process", definition.name, time.monotonic() - started)
    say(f"the environment is ready after {time.monotonic() - started:.0f} s: {environment.folder}")


@contextmanager
def _repeating(text: str, say: Callable[[str], None]) -> Iterator[None]:
    """Report now and then how long something has taken so far: pip may be silent for minutes."""
    started, ended = time.monotonic(), threading.Event()

    def repeat() -> None:
        while not ended.wait(_SILENT_SECONDS):
            say(f"{text}, after {time.monotonic() - started:.0f} s")

    thread = threading.Thread(target=repeat, name="progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _link(environment: OwnEnvironment, definition: ImageDefinition) -> None:
    site_packages = environment.site_packages
    # The files are linked, not copied, so that a change in a checkout needs no new environment.
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
    """Return the Python version for an image's environment: this interpreter's, unless the image requires another."""
    return definition.python or f"{sys.version_info.major}.{sys.version_info.minor}"


def _find_interpreter(version: str) -> str:
    """Return this interpreter if it has the version, otherwise the one on PATH."""
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
