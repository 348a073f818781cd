"""Substitute for SageMaker's older toolkit, sagemaker_containers.

Its newer name is sagemaker_training.
"""

import importlib
from typing import Any

__all__ = ["training_env"]


def training_env() -> Any:
    """Return what the toolkit knows of the job, such as ``hosts``, ``model_dir`` and ``channel_input_dirs``."""
    return importlib.import_module("sagemaker_training.environment").Environment()
