"""TensorBoard installed in a separate folder, for benchmarks and a test.

tensorflow-cpu does not include it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("tensorboard==2.21.0", "markdown==3.10", "tensorboard-data-server==0.7.2")
CACHE = Path(__file__).parents[2] / ".cache" / "venvs"


def build_tensorboard() -> Path:
    """Return a folder with TensorBoard for PYTHONPATH, which is built on first use.

    Raises:
        RuntimeError: pip could not install TensorBoard; the text contains pip's output.
    """
    folder = CACHE / "-".join(PACKAGES).replace("==", "-")
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        # TensorFlow already includes all other dependencies.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"pip could not install {PACKAGES}:\n{installed.stderr}")
        complete.touch()
    return folder
