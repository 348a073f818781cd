"""What cannot live beside this project, such as the real smdebug 1.0.34, in virtual environments of its own."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements-original.txt"
CACHE = Path(__file__).parents[1] / ".cache" / "venvs"


def build_original(requirements: Path = REQUIREMENTS) -> Path:
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
    made_of = f"{sys.version}\n{requirements.read_text()}"
    folder = CACHE / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _build(folder, python, requirements)
    return python


def _build(folder: Path, python: Path, requirements: Path) -> None:
    complete = folder / "complete"
    if not complete.exists():
        sys.stderr.write(f"Building {folder}, once: {requirements.name} may take some minutes ...\n")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        command = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            str(requirements),
        ]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"pip could not install {requirements}:\n{installed.stderr}")
        complete.touch()
