"""Wheels fetched on the host for image builds that have no network.

AWS's training toolkit is published as source with a C extension. Its wheel is built here without the extension, so no
compiler is needed. The extension matters only for jobs that run on several machines with MPI. Packages that PyPI has
only as GPU builds are adapted if pip finds a CPU-only PyTorch (``cpu_wheels.py``).
"""

import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from container_runtime.file_lock import hold_lock, is_held
from container_runtime.images.architecture import find_architecture
from container_runtime.images.cpu_wheels import (
    CPU_ONLY,
    CPU_ONLY_PACKAGES,
    FITTING,
    build_placeholder_wheels,
    fit_wheel,
    fit_wheels,
)
from container_runtime.images.lock_files import CPU_ONLY_MARK, INSTALLER_MARK, PLACEHOLDER_MARK, is_locked
from container_runtime.runtime import ContainerRuntimeError, WheelhouseError

IMAGE_PYTHON = "3.11"
"""Python version of this project's images, which may differ from that of the host."""

TRAINING_TOOLKIT = "sagemaker-training==5.1.4"
_TOOLKIT_NEEDS = "inotify_simple==1.2.1"
"""Also published only as source, but pure Python."""

FOR_GPUS = re.compile(r"(nvidia|cuda)-|triton\b")
"""Packages that only a framework's GPU wheel needs."""

# Beginning of the names of folders with wheels that are being fetched, and the lock file in each.
_UNFINISHED, _LOCK = "fetching-", "lock"

# Debian 12 has glibc 2.36, which runs wheels for all older versions. pip does not know that 2014 and 2010 are other
# names for 2.17 and 2.12.
_PLATFORMS = [f"manylinux_2_{minor}_{find_architecture()}" for minor in range(36, 4, -1)]
_PLATFORMS += [f"manylinux{year}_{find_architecture()}" for year in (2014, 2010)]

_SETUP_WITHOUT_EXTENSION = '''\
"""Runs the original setup with a module in place of its C extension."""
import runpy

import setuptools

original_setup = setuptools.setup
in_place = {"ext_modules": [], "py_modules": ["gethostname"]}
setuptools.setup = lambda **arguments: original_setup(**{**arguments, **in_place})
runpy.run_path("setup_original.py", run_name="__main__")
'''
_MODULE_FOR_EXTENSION = '''\
"""In place of the toolkit's C extension, which gives MPI's processes the host names that SageMaker gave."""


def call(*_):
    raise NotImplementedError("This wheel was built without the C extension that MPI jobs need.")
'''


def key_of_requirements(requirements: Iterable[str], python: str = IMAGE_PYTHON) -> str:
    """Return a short hash of the requirements, the platform and the Python version."""
    lines = sorted(requirements)
    fitting = [FITTING for each in lines if each.startswith(CPU_ONLY_PACKAGES)]
    made_here = [_SETUP_WITHOUT_EXTENSION, _MODULE_FOR_EXTENSION, *fitting]
    text = "\n".join([python, find_architecture(), *made_here, *lines])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fetch_wheels(requirements: Sequence[str], cache: Path, python: str = IMAGE_PYTHON) -> Path:
    """Return a folder with wheels of all requirements and their dependencies, pip, and a ``requirements.txt``.

    The wheels are fetched once. The name of the folder is a hash of the requirements.

    Args:
        requirements: requirements for pip, or all lines of a lock file. From a lock file, only the packages that it
            names are fetched, and ``requirements.txt`` has the hash of every wheel.
        cache: parent folder of the result.
        python: Python version that the wheels are for, for example ``3.11``.

    Raises:
        WheelhouseError: pip failed, or a hash differs from the one in the lock file.
    """
    folder = cache / "wheels" / key_of_requirements(requirements, python)
    if folder.is_dir():
        return folder
    with _open_unfinished(folder.parent) as unfinished:
        partial = unfinished / "wheels"
        partial.mkdir()
        fetched = _fetch(requirements, partial, python)
        (partial / "requirements.txt").write_text("".join(f"{line}\n" for line in fetched), encoding="utf-8")
        try:
            partial.rename(folder)
        except OSError:
            # Another process was faster: an image and an environment may need the same wheels at once.
            if not folder.is_dir():
                raise
    return folder


def remove_wheels(cache: Path) -> None:
    """Remove the fetched wheels. If this is interrupted, the next fetch removes the rest.

    Raises:
        ContainerRuntimeError: they cannot be removed.
    """
    parent = cache / "wheels"
    try:
        with hold_lock(parent.with_name(f"{parent.name}.lock")):
            for left in _list_left(parent):
                shutil.rmtree(left)
            for each in parent.glob("*"):
                if not each.is_dir():
                    each.unlink()
                elif not each.name.startswith(_UNFINISHED):
                    # Renamed first: a folder of which a part is removed must not look like one with all wheels.
                    shutil.rmtree(each.rename(parent / f"{_UNFINISHED}{each.name}"))
            with suppress(OSError):  # another process fetches into it
                parent.rmdir()
    except OSError as exc:
        raise ContainerRuntimeError(f"{parent} cannot be removed: {exc.strerror}.") from exc


@contextmanager
def _open_unfinished(parent: Path) -> Iterator[Path]:
    """Make a folder for the time of the context, and remove those that killed processes have left in ``parent``.

    A process holds a lock in its folder, which ends with it. The folder is made while no other process looks, because
    at first nobody holds its lock.
    """
    with ExitStack() as stack:
        with hold_lock(parent.with_name(f"{parent.name}.lock")):
            parent.mkdir(parents=True, exist_ok=True)
            for left in _list_left(parent):
                shutil.rmtree(left, ignore_errors=True)
            made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=parent)))
            stack.enter_context(hold_lock(made / _LOCK))
        yield made


def _list_left(parent: Path) -> list[Path]:
    """List the folders of fetches and removals that were interrupted."""
    return [each for each in parent.glob(f"{_UNFINISHED}*") if not is_held(each / _LOCK)]


def _fetch(requirements: Sequence[str], into: Path, python: str) -> list[str]:
    """Fetch wheels, and return the requirements to install from them."""
    toolkits = [line for line in requirements if line.startswith("sagemaker-training==")]
    if not is_locked(requirements):
        for toolkit in toolkits:
            build_training_toolkit(into, toolkit)
            _build_wheel(_TOOLKIT_NEEDS, into)
        download([*requirements, "pip", "uv"], into, python, "--find-links", str(into))
        fit_wheels(into)
        return list(requirements)
    wanted = list(requirements)
    for toolkit in toolkits:
        needed = next(line for line in requirements if line.startswith("inotify-simple=="))
        for line, wheel in ((toolkit, build_training_toolkit(into, toolkit)), (needed, _build_wheel(needed, into))):
            wanted[wanted.index(line)] = f"{line.split()[0]} --hash=sha256:{_hash_file(wheel)}"
    smaller = [line for line in wanted if line.endswith(CPU_ONLY_MARK)]
    wanted = [line for line in wanted if line not in smaller]
    if smaller and _find(smaller, into, python):
        names = {line.partition("==")[0] for line in smaller}
        kept = [line for line in wanted if line.partition("==")[0] not in names and FOR_GPUS.match(line) is None]
        wanted = [*kept, *smaller]
    absent = [line for line in wanted if line.endswith(PLACEHOLDER_MARK)]
    wanted = [line for line in wanted if line not in absent]
    download(wanted, into, python, "--no-deps", "--require-hashes", "--find-links", str(into))
    fitted = fit_wheels(into)
    wanted = [line for line in wanted if not (line.endswith(INSTALLER_MARK) or line.partition("==")[0] in fitted)]
    placeholders = build_placeholder_wheels(absent, into)
    return [*wanted, *map(_name_wheel, (*fitted.values(), *placeholders))]


def _find(lines: Sequence[str], into: Path, python: str) -> bool:
    """Fetch wheels that not every package index has, and return whether they were found."""
    try:
        download(lines, into, python, "--no-deps", "--require-hashes")
    except WheelhouseError as error:
        if "No matching distribution" not in str(error):
            raise
        return False
    return True


def download(lines: Sequence[str], into: Path, python: str, *options: str) -> None:
    """Fetch wheels for a Python version on Linux with pip.

    Raises:
        WheelhouseError: pip failed.
    """
    platforms = [argument for tag in _PLATFORMS for argument in ("--platform", tag)]
    with _written(lines) as file:
        _run_pip(
            _name(lines),
            *("download", "--dest", str(into), "--only-binary", ":all:", *options),
            *("--python-version", python, "--implementation", "cp", *platforms, "--requirement", file),
        )


def _build_wheel(line: str, into: Path) -> Path:
    """Build the wheel of a package that is published only as source, and return its path."""
    with _written([line]) as file:
        _run_pip(_name([line]), "wheel", "--no-deps", "--wheel-dir", str(into), "--requirement", file)
    return next(into.glob(f"{line.partition('==')[0].replace('-', '_')}-*.whl"))


@contextmanager
def _written(lines: Iterable[str]) -> Iterator[str]:
    """Write a temporary requirements file, because pip accepts hashes only in a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        yield file.name


def _name(lines: Sequence[str]) -> str:
    """Return the first requirements as text, for a message."""
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return ", ".join(line.split()[0] for line in lines[:3]) + more


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name_wheel(wheel: Path) -> str:
    """Return the requirement line, with hash, of a wheel that was built here."""
    name, version, _ = wheel.name.split("-", 2)
    return f"{name}=={version} --hash=sha256:{_hash_file(wheel)}"


def fetch_cpu_only_wheels(into: Path) -> list[Path]:
    """Adapt the GPU builds that this interpreter has installed next to a CPU-only PyTorch.

    Returns:
        The adapted wheels, which are to be installed instead; none if there is nothing to adapt.

    Raises:
        WheelhouseError: pip cannot fetch the wheels.
    """
    versions = {name: importlib.metadata.version(name) for name in ("torch", *CPU_ONLY_PACKAGES)}
    lines = [f"{name}=={versions[name]}" for name in CPU_ONLY_PACKAGES if CPU_ONLY not in versions[name]]
    if CPU_ONLY not in versions["torch"] or not lines:
        return []
    into.mkdir(parents=True, exist_ok=True)
    download(lines, into, f"{sys.version_info.major}.{sys.version_info.minor}", "--no-deps")
    return [fit_wheel(wheel) for line in lines for wheel in into.glob(f"{line.replace('==', '-')}-*.whl")]


def build_training_toolkit(into: Path, requirement: str = TRAINING_TOOLKIT) -> Path:
    """Build a pure Python wheel of the training toolkit and return its path.

    Raises:
        WheelhouseError: pip cannot fetch the source or build it.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        source = _unpack_source(requirement, Path(temporary))
        (source / "setup.py").rename(source / "setup_original.py")
        (source / "setup.py").write_text(_SETUP_WITHOUT_EXTENSION, encoding="utf-8")
        (source / "gethostname.py").write_text(_MODULE_FOR_EXTENSION, encoding="utf-8")
        _run_pip(source.name, "wheel", "--no-deps", "--wheel-dir", temporary, str(source))
        built = next(Path(temporary).glob("*.whl"))
        return Path(shutil.copy2(built, into))


def _unpack_source(requirement: str, into: Path) -> Path:
    # Only the archive is needed, so pip resolves no dependencies.
    with _written([requirement]) as file:
        options = ("--no-deps", "--no-binary", ":all:", "--dest", str(into))
        _run_pip(_name([requirement]), "download", *options, "--requirement", file)
    archive = next(into.glob("*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    archive.unlink()
    return next(path for path in into.iterdir() if path.is_dir())


def _run_pip(what: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise WheelhouseError(f"`pip {arguments[0]}` failed for {what}:\n{last}")
