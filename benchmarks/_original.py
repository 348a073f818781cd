"""The real smdebug 1.0.34 in virtual environments of its own: never beside this project's package of the same name."""

from __future__ import annotations

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
    made_of = f"{sys.version}\n{requirements.read_text()}"
    folder = CACHE / f"original-smdebug-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
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
    return python
