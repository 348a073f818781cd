"""Profiler trial: a job's profile in the form that custom rules expect."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smdebug.exceptions import NoMoreProfilerData
from smdebug.logger import get_logger
from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.profile_files import open_profile_files
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent
from smdebug.profiler.trace_event_file_parser import TraceEvent

_ENDS = ("/system/training_job_end.ts", "/framework/training_job_end.ts")


class ProfilerTrial:
    """Reads a job's profile while the job runs.

    Args:
        name: name of the trial.
        trial_dir: `profiler-output`, as a folder or `s3://bucket/prefix`.
        output_dir: the folder for a rule's output, created if it is missing. Its subfolder `.sagemaker-ignore` is for
            files that must not be uploaded.
        poll_interval_s: time between two checks while waiting.

    Raises:
        SMDebugValueError: the path names no bucket.
        ObjectStoreError: S3 refuses or cannot be reached.
        OSError: the folder cannot be created.
        NoMoreProfilerData: the job ended without a profile.

    Attributes:
        path: trial_dir.
        first_timestamp: time of the first file in microseconds since the epoch; reading it waits for that file.
    """

    # A rule on a profile is invoked repeatedly until NoMoreProfilerData; its steps are only numbers.
    dynamic_refresh = False

    def __init__(self, name: str | None, trial_dir: str, output_dir: str, *, poll_interval_s: float = 1.0) -> None:
        self.name = name or trial_dir.rstrip("/").rpartition("/")[2]
        self.path = trial_dir
        self.logger = get_logger()
        self.system_metrics_reader = SystemMetricsReader(trial_dir)
        self.framework_metrics_reader = AlgorithmMetricsReader(trial_dir)
        self._files = open_profile_files(trial_dir)
        self._poll_interval_s = poll_interval_s
        self.output_dir = output_dir
        self.temp_dir = str(Path(output_dir, ".sagemaker-ignore"))
        Path(self.temp_dir).mkdir(parents=True, exist_ok=True)
        self.first_timestamp = 0
        self.get_first_timestamp()

    def get_first_timestamp(self) -> int:
        """Wait for the first file, and return its time in microseconds since the epoch.

        Raises:
            NoMoreProfilerData: the job ended without a profile.
        """
        while self.first_timestamp == 0:
            ended = self.job_finished()
            readers = self._refresh()
            self.first_timestamp = min(
                filter(None, (each.get_timestamp_of_first_available_file() for each in readers)), default=0
            )
            if self.first_timestamp == 0:
                if ended:
                    raise NoMoreProfilerData(0)
                time.sleep(self._poll_interval_s)
        return self.first_timestamp

    def get_latest_timestamp(self) -> int:
        """Return the time of the latest file in microseconds since the epoch; 0 if there is no file."""
        return max(each.get_timestamp_of_latest_available_file() for each in self._refresh())

    def job_finished(self) -> bool:
        """Whether the profile is complete."""
        return any(name in self._files.list_sizes(name) for name in _ENDS)

    def wait_for_data(self, end_time: float, start_time: float) -> None:
        """Wait until files of an interval, in microseconds since the epoch, exist or the job has ended.

        Raises:
            NoMoreProfilerData: the job has ended, and there is no data after start_time.
        """
        while True:
            ended = self.job_finished()
            # A trace is there as soon as it is written, and the measures of a minute only after it.
            system, framework = (each.get_timestamp_of_latest_available_file() for each in self._refresh())
            if end_time < (system or framework):
                return
            if ended:
                # The name of a file contains either the minute at which it begins or its end.
                if not (
                    self.get_system_metrics(start_time, 1 << 62) or self.get_framework_metrics(start_time, 1 << 62)
                ):
                    raise NoMoreProfilerData(end_time)
                return
            time.sleep(self._poll_interval_s)

    def wait_for_steps(self, required_steps: Sequence[int]) -> None:
        """Do nothing: a rule on a profile waits for data itself."""

    def wait_for_next_step(self, step: int, *_: Any, **__: Any) -> int:
        """Return the step: a rule on a profile waits for data itself."""
        return step

    def get_system_metrics(self, start_time: float, end_time: float) -> list[ProfilerSystemEvent]:
        """Return system metrics between two times in microseconds since the epoch."""
        return self.system_metrics_reader.get_events(start_time, end_time)

    def get_framework_metrics(self, start_time: float, end_time: float) -> list[TraceEvent]:
        """Return trace events between two times in microseconds since the epoch."""
        return self.framework_metrics_reader.get_events(start_time, end_time)

    def _refresh(self) -> tuple[SystemMetricsReader, AlgorithmMetricsReader]:
        self.system_metrics_reader.refresh_event_file_list()
        self.framework_metrics_reader.refresh_event_file_list()
        return self.system_metrics_reader, self.framework_metrics_reader
