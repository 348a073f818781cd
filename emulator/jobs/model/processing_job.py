"""Processing job records; rule evaluations have records of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from emulator.jobs.model.arns import build_arn
from emulator.jobs.model.requested_job import RequestedJob
from emulator.jobs.model.training_job import DEFAULT_RUNTIME_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingJob(RequestedJob):
    """A processing job that CreateProcessingJob made.

    Attributes:
        exit_message: what its container left in /opt/ml/output/message.
        start_ms: when its containers started.
    """

    exit_message: str | None = None
    start_ms: int | None = None

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return build_processing_job_arn(self.account_id, self.region, self.name)

    @property
    def processing_job_status(self) -> str:
        """ProcessingJobStatus."""
        return self.status

    @property
    def max_runtime_seconds(self) -> int:
        """StoppingCondition.MaxRuntimeInSeconds; AWS's default is a day."""
        return int((self.request.get("StoppingCondition") or {}).get("MaxRuntimeInSeconds") or DEFAULT_RUNTIME_SECONDS)

    def start(self, now_ms: int) -> ProcessingJob:
        """Return the job with its containers running."""
        return replace(self, start_ms=now_ms, last_modified_ms=now_ms)


def build_processing_job_arn(account_id: str, region: str, name: str) -> str:
    """ARN of the processing job ``name``, in lower case as AWS writes it."""
    return build_arn(account_id, region, f"processing-job/{name.lower()}")
