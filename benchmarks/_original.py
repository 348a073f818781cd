"""The real smdebug 1.0.34 in a virtual environment of its own, to be measured beside ours."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements-original.txt"
CACHE = Path(__file__).parents[1] / ".cache" / "venvs"


def build_original() -> Path:
    """Path of an interpreter that has the real smdebug and torch; built again when the requirements change."""
    made_of = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    folder = CACHE / f"original-smdebug-torch-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"pip could not install {REQUIREMENTS}:\n{installed.stderr}")
        complete.touch()
    return python
