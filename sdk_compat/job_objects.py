"""Names of training jobs in what the SDKs return."""

from typing import Any


def read_job_name(job: Any) -> str:
    """Return the name of a training job.

    Args:
        job: the name, a response of DescribeTrainingJob, an estimator (SDK v2), a ModelTrainer (SDK v3), or a
            job object of either SDK.

    Raises:
        TypeError: the object has no job name.
    """
    if isinstance(job, dict):
        job = job.get("TrainingJobName")
    for attribute in ("latest_training_job", "_latest_training_job"):
        job = getattr(job, attribute, None) or job
    name = job if isinstance(job, str) else getattr(job, "training_job_name", None) or getattr(job, "name", None)
    if not isinstance(name, str):
        raise TypeError(
            f"{job!r} names no training job: give its name, an estimator whose fit() was called, or a ModelTrainer "
            "whose train() was called."
        )
    return name
