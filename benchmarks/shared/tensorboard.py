"""TensorBoard installed in a separate folder, for benchmarks and a test.

tensorflow-cpu does not include it.
"""

import shutil
from pathlib import Path

from benchmarks.shared.installer import install_packages

PACKAGES = ("tensorboard==2.21.0", "markdown==3.10", "tensorboard-data-server==0.7.2")
CACHE = Path(__file__).parents[2] / ".cache" / "venvs"


def locate_tensorboard() -> Path:
    """Return the folder that ``build_tensorboard`` builds, whether it has been built or not."""
    return CACHE / "-".join(PACKAGES).replace("==", "-")


def build_tensorboard() -> Path:
    """Return a folder with TensorBoard for PYTHONPATH, which is built on first use.

    Raises:
        RuntimeError: TensorBoard could not be installed; the text says why.
    """
    folder = locate_tensorboard()
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        # TensorFlow already includes all other dependencies.
        install_packages(["--no-deps", "--target", str(folder), *PACKAGES])
        complete.touch()
    return folder
