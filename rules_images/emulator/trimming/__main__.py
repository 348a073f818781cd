"""Removal of what is not run from packages, as a step of an image's build.

The files are gone for the image only if its layer is written afterwards.
"""

import argparse
import shutil
from pathlib import Path

from rules_images.emulator.trimming.aws_models import trim_models
from rules_images.emulator.trimming.shared_objects import cut_sections

_SOURCES = ("*.pyi", "*.a", "*.h", "*.pxd", "*.pyx", "*.c", "*.cu", "*.cuh", "*.hpp", "*.exe")
"""What only a compiler, a type checker or Windows reads."""

_UNUSED = (
    "numpy/distutils",
    "sqlalchemy/dialects/mssql",
    "sqlalchemy/dialects/oracle",
    "sqlalchemy/testing",
    "tensorflow/include",
    "torch/bin/*[Tt]est*",
    "torch/bin/protoc*",
    "torch/include",
    "torch/test",
    # Of pictures: few scripts import it, and a requirements.txt brings it.
    "cv2",
    "opencv_python_headless*",
)
"""Build systems and tests of packages, databases that the emulator does not use, and what is left out of its image."""


def trim_packages(folder: Path, *, keep_bytecode: bool) -> None:
    """Remove from a site-packages folder what is not run; bytecode, too, where the first use stores it again."""
    removed = [path for path in folder.rglob("tests") if path.is_dir()]
    removed += [] if keep_bytecode else folder.rglob("__pycache__")
    for path in (*removed, *(found for pattern in _UNUSED for found in folder.glob(pattern))):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for pattern in _SOURCES:
        for path in folder.rglob(pattern):
            path.unlink()
    for path in folder.rglob("*.so*"):
        if path.is_file() and not path.is_symlink():
            cut_sections(path)
    if (folder / "moto").is_dir():
        trim_models(folder / "botocore" / "data")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m rules_images.emulator.trimming")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--keep-bytecode", action="store_true")
    given = parser.parse_args()
    for each in given.folders:
        trim_packages(each, keep_bytecode=given.keep_bytecode)
