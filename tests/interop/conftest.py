"""The real smdebug 1.0.34 in a virtual environment of its own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parent / "requirements-original.txt"
CACHE = Path(__file__).parents[2] / ".cache" / "venvs"


@pytest.fixture(scope="session")
def original_smdebug_python() -> Path:
    """Path of an interpreter that has the real smdebug; built on first use, and again if the requirements change."""
    made_of = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    folder = CACHE / f"original-smdebug-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        assert installed.returncode == 0, f"pip could not install {REQUIREMENTS}:\n{installed.stderr}"
        complete.touch()
    return python
