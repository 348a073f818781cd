"""TensorBoard installed in a separate folder, for benchmarks and a test.

tensorflow-cpu does not bring it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("tensorboard==2.21.0", "markdown==3.10", "tensorboard-data-server==0.7.2")
CACHE = Path(__file__).parents[1] / ".cache" / "venvs"


def build_tensorboard() -> Path:
    """Path to put on PYTHONPATH beside this interpreter's packages; built on first use.

    Raises:
        RuntimeError: pip could not install it; the text holds what it said.
    """
    folder = CACHE / "-".join(PACKAGES).replace("==", "-")
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        # TensorFlow brings the rest of what they need.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"pip could not install {PACKAGES}:\n{installed.stderr}")
        complete.touch()
    return folder
