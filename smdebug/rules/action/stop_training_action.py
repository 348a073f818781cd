"""Action that stops the training job of a rule."""

from typing import Any

from smdebug.logger import get_logger
from smdebug.rules.action.client import build_client

_PAGE = 100


class StopTrainingAction:
    """Stops the one training job in progress whose name begins with a prefix.

    The job is searched for when the action is created. If it was not found then, it is searched for again when the
    action is performed. If several jobs match, none is stopped, because the prefix does not say which one is meant.
    """

    def __init__(self, rule_name: str, training_job_prefix: str, client: Any = None) -> None:
        """Search for the job.

        Args:
            rule_name: the rule's name, for the log.
            training_job_prefix: the beginning of the job's name; case matters.
            client: boto3's SageMaker client; None creates one.

        Raises:
            botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError: SageMaker refuses or does not answer.
            SMDebugError: boto3 is not installed.
        """
        self._rule_name = rule_name
        self._training_job_prefix = training_job_prefix
        self._sm_client = build_client("sagemaker") if client is None else client
        self._found_jobs = self._get_sm_tj_jobs_with_prefix()

    def _get_sm_tj_jobs_with_prefix(self) -> list[str]:
        """Return the names of all jobs in progress that begin with the prefix."""
        prefix = self._training_job_prefix
        pages = self._sm_client.get_paginator("list_training_jobs").paginate(
            NameContains=prefix, StatusEquals="InProgress", MaxResults=_PAGE
        )
        names = (summary["TrainingJobName"] for page in pages for summary in page["TrainingJobSummaries"])
        # SageMaker searches anywhere in the name and ignores case.
        return [name for name in names if name.startswith(prefix)]

    def invoke(self, message: str | None = None) -> str:
        """Stop the job if exactly one matches; errors of SageMaker are raised, and `Actions` logs them.

        Returns:
            A sentence that says what was done.
        """
        self._found_jobs = self._found_jobs or self._get_sm_tj_jobs_with_prefix()
        if len(self._found_jobs) != 1:
            seen = ", ".join(self._found_jobs) or "none"
            get_logger().error(
                "Rule %s stops nothing: one job in progress should begin with %r, and these do: %s. Give a prefix that "
                "only one has.",
                self._rule_name,
                self._training_job_prefix,
                seen,
            )
            return (
                f"no job was stopped: {len(self._found_jobs)} jobs in progress have names that begin with "
                f"{self._training_job_prefix!r}"
            )
        (name,) = self._found_jobs
        get_logger().info("Rule %s stops training job %s. %s", self._rule_name, name, message or "")
        self._sm_client.stop_training_job(TrainingJobName=name)
        return f"job {name} was told to stop"
