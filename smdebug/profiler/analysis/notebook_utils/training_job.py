"""A training job's profile, found by the job's name."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.profiler.algorithm_metrics_reader import S3AlgorithmMetricsReader
from smdebug.profiler.system_metrics_reader import S3SystemMetricsReader
from smdebug.profiler.utils import us_since_epoch_to_human_readable_time

_POLL_INTERVAL_S = 10.0
_MOST_SHOWN = 20
_NOT_FOUND = ("ValidationException", "ResourceNotFound")
_ENDED = ("Completed", "Failed", "Stopped")


class TrainingJob:
    """A SageMaker training job, described by boto3's client as the environment configures it.

    Args:
        training_job_name: the job's name or a part of it. The part has to be the beginning of only one job's name in
            the region, or else occur in only one.
        region: region of the job; None: the environment's region.
        poll_interval_s: time between two checks while waiting.

    Raises:
        SMDebugError: boto3 is not installed.
        SMDebugValueError: the job has no profiler, or several jobs match.
        botocore's ClientError: there is no such job.

    Attributes:
        name: the job's full name.
        profiler_config: the job's ProfilerConfig.
        profiler_s3_output_path: location of its files.
    """

    def __init__(
        self, training_job_name: str, region: str | None = None, *, poll_interval_s: float = _POLL_INTERVAL_S
    ) -> None:
        try:
            import boto3
        except ImportError as error:
            raise SMDebugError("Asking for a training job needs boto3: pip install boto3.") from error
        self.sm_client: Any = boto3.client("sagemaker", region_name=region)
        self.name = self._find_name(training_job_name)
        self.system_metrics_reader: S3SystemMetricsReader | None = None
        self.framework_metrics_reader: S3AlgorithmMetricsReader | None = None
        self._poll_interval_s = poll_interval_s
        self.profiler_config, self.profiler_s3_output_path = self.get_config_and_profiler_s3_output_path()

    def get_systems_metrics_reader(self) -> S3SystemMetricsReader | None:
        """Return the reader of system metrics; None before they were waited for."""
        return self.system_metrics_reader

    def get_framework_metrics_reader(self) -> S3AlgorithmMetricsReader | None:
        """Return the reader of trace events; None before they were waited for."""
        return self.framework_metrics_reader

    def get_sm_client(self) -> Any:
        """Return boto3's client."""
        return self.sm_client

    def get_config_and_profiler_s3_output_path(self) -> tuple[dict[str, Any], str]:
        """Return the job's ProfilerConfig and the location of its files.

        Raises:
            SMDebugValueError: the job has no profiler.
        """
        described = self.describe_training_job()
        config = dict(described.get("ProfilerConfig") or {})
        place = config.get("S3OutputPath")
        if not place:
            raise SMDebugValueError(
                f"The training job {self.name} has no profiler: its request has no ProfilerConfig with an S3OutputPath."
            )
        return config, f"{place.rstrip('/')}/{self.name}/profiler-output"

    def wait_for_sys_profiling_data_to_be_available(self) -> None:
        """Wait for the first file of system metrics.

        Raises:
            SMDebugError: the job ended without one.
        """
        self.system_metrics_reader = S3SystemMetricsReader(self.profiler_s3_output_path)
        self._wait("system metrics", self.system_metrics_reader)

    def wait_for_framework_profiling_data_to_be_available(self) -> None:
        """Wait for the first file of trace events.

        Raises:
            SMDebugError: the job ended without one.
        """
        self.framework_metrics_reader = S3AlgorithmMetricsReader(self.profiler_s3_output_path)
        self._wait("trace events", self.framework_metrics_reader)

    def describe_training_job(self) -> Any:
        """Return the response of DescribeTrainingJob."""
        return self.sm_client.describe_training_job(TrainingJobName=self.name)

    def _find_name(self, text: str) -> str:
        from botocore.exceptions import ClientError

        try:
            self.sm_client.describe_training_job(TrainingJobName=text)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _NOT_FOUND:
                raise
            pages = self.sm_client.get_paginator("list_training_jobs").paginate(NameContains=text, MaxResults=100)
            known = [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
            found = choose_named(text, known)
            if not found:
                raise
        else:
            return text
        if len(found) > 1:
            listed = ", ".join(found[:_MOST_SHOWN])
            more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
            raise SMDebugValueError(
                f"{text} matches {len(found)} training jobs: {listed}{more}. Give more of the name."
            )
        return found[0]

    def _wait(self, what: str, reader: S3SystemMetricsReader | S3AlgorithmMetricsReader) -> None:
        said = ""
        say: Callable[[str], None] = print
        while True:
            # A listing made after the job was seen to have ended is complete.
            described = self.describe_training_job()
            reader.refresh_event_file_list()
            latest = reader.get_timestamp_of_latest_available_file()
            if latest:
                say(f"There are {what}; the latest file is of {us_since_epoch_to_human_readable_time(latest)} (UTC).")
                return
            state = f"{described['TrainingJobStatus']}, {described['SecondaryStatus']}"
            if described["TrainingJobStatus"] in _ENDED:
                raise SMDebugError(f"The training job {self.name} is {state} and has left no {what}.")
            if state != said:
                say(f"Waiting for {what}: the job is {state}.")
                said = state
            time.sleep(self._poll_interval_s)


def choose_named(text: str, known: Sequence[str]) -> list[str]:
    """Return the names that ``text`` may mean: the equal name, else those beginning with it, else those containing it.

    The emulator chooses in the same way. An empty text matches nothing.

    >>> choose_named("tb", ["m-outb", "tb-2026"])
    ['tb-2026']
    """
    if not text:
        return []
    begins = [name for name in known if name.startswith(text)]
    return [name for name in begins if name == text] or begins or [name for name in known if text in name]
