"""TensorBoard's writing half, which tensorflow-cpu does not bring: in a folder of its own, for measurements only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = "tensorboard==2.21.0"
CACHE = Path(__file__).parents[1] / ".cache" / "venvs"


def build_tensorboard() -> Path:
    """Path to put on PYTHONPATH beside this interpreter's packages; built on first use.

    Raises:
        RuntimeError: pip could not install it; the text holds what it said.
    """
    folder = CACHE / PACKAGE.replace("==", "-")
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        # Writing summaries takes nothing else that TensorFlow does not bring.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PACKAGE]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"pip could not install {PACKAGE}:\n{installed.stderr}")
        complete.touch()
    return folder
