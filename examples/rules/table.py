"""Shared parts of the trainings: scikit-learn's digits, and `--cured`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def load_digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """1,797 images of 8 x 8 pixels from 0 to 1 as rows of 64, and the digits that they show."""
    data = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    return data["images"], data["labels"]


def is_cured() -> bool:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cured", choices=["true", "false"], default="false", help="train without the mistake")
    return bool(parser.parse_args().cured == "true")
