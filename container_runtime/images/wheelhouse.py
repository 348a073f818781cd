"""Fetches wheels on the host, where pip is configured and a network may be reached, for builds that have neither.

AWS's training toolkit is published as source with a C extension: its wheel is built here without that extension, so no
compiler is needed. The extension only matters to jobs that are spread over machines with MPI.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from container_runtime.runtime import WheelhouseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

IMAGE_PYTHON = "3.11"
"""Version of the interpreter in our images, which need not be the host's."""

TRAINING_TOOLKIT = "sagemaker-training==5.1.4"
_TOOLKIT_NEEDS = "inotify_simple==1.2.1"
"""Published as source, too, and pure Python."""

# Debian 12's glibc is 2.36; every older one's wheels run on it. pip does not know that 2014 and 2010 are other names of
# 2.17 and 2.12.
_PLATFORMS = [f"manylinux_2_{minor}_{platform.machine()}" for minor in range(36, 4, -1)]
_PLATFORMS += [f"manylinux{year}_{platform.machine()}" for year in (2014, 2010)]

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
    """Short text that is the same for the same requirements on the same platform and version of Python."""
    text = "\n".join(
        [python, platform.machine(), _SETUP_WITHOUT_EXTENSION, _MODULE_FOR_EXTENSION, *sorted(requirements)]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fetch_wheels(requirements: Sequence[str], cache: Path, python: str = IMAGE_PYTHON) -> Path:
    """Return a folder with a wheel for every requirement, what they require, pip, and ``requirements.txt``.

    Fetched once: the folder's name is made of the requirements.

    Args:
        requirements: as pip takes them.
        cache: holds the folder.
        python: version that the wheels are for, e.g. ``3.11``.

    Raises:
        WheelhouseError: pip failed.
    """
    folder = cache / "wheels" / key_of_requirements(requirements, python)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as temporary:
        partial = Path(temporary) / "wheels"
        partial.mkdir()
        for toolkit in (line for line in requirements if line.startswith("sagemaker-training==")):
            build_training_toolkit(partial, toolkit)
            _run_pip("wheel", "--no-deps", "--wheel-dir", str(partial), _TOOLKIT_NEEDS)
        platforms = [argument for tag in _PLATFORMS for argument in ("--platform", tag)]
        _run_pip(
            "download",
            *("--dest", str(partial), "--find-links", str(partial), "--only-binary", ":all:"),
            *("--python-version", python, "--implementation", "cp", *platforms),
            *(*requirements, "pip"),
        )
        (partial / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        try:
            partial.rename(folder)
        except OSError:
            # Another process was quicker: an image and an environment may want the same at once.
            if not folder.is_dir():
                raise
    return folder


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
        _run_pip("wheel", "--no-deps", "--wheel-dir", temporary, str(source))
        built = next(Path(temporary).glob("*.whl"))
        return Path(shutil.copy2(built, into))


def _unpack_source(requirement: str, into: Path) -> Path:
    # Metadata is not asked for (no build isolation, no dependencies): only the archive is wanted.
    _run_pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(into), requirement)
    archive = next(into.glob("*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    archive.unlink()
    return next(path for path in into.iterdir() if path.is_dir())


def _run_pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise WheelhouseError(f"`pip {' '.join(arguments[:1])}` failed for {arguments[-1]}:\n{last}")
