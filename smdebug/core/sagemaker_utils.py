"""Whether SageMaker runs this process."""

from __future__ import annotations

import os

from smdebug.core.config_constants import TRAINING_JOB_NAME_ENV_STR

__all__ = ["is_sagemaker_job"]


def is_sagemaker_job() -> bool:
    """Tell whether this process belongs to a SageMaker training job: TRAINING_JOB_NAME is set."""
    return TRAINING_JOB_NAME_ENV_STR in os.environ
