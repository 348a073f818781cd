"""Incremental reader of a running job's profile.

It returns each sample and each event once.
"""

from smdebug.profiler import system_samples, trace_events
from smdebug.profiler.profile_files import open_profile_files
from smdebug.profiler.system_samples import Sample, SampleBuilder
from smdebug.profiler.trace_events import TraceEvent, TraceParser

_SYSTEM = "/system/"
_EVENTS = "/framework/pevents/"
# Either file marks the end of the profile.
_ENDS = ("/system/training_job_end.ts", "/framework/training_job_end.ts")


class JobProfile:
    """Reads the files of one job as they grow.

    Args:
        path: `profiler-output`, as a folder or `s3://bucket/prefix`.
        unfinished: a folder that contains those of the job's files that are not complete yet.

    Raises:
        SMDebugValueError: the path names no bucket.

    Attributes:
        ended: whether the profile is complete.
        files: all files of the profile.
    """

    def __init__(self, path: str, unfinished: str | None = None) -> None:
        self.files = open_profile_files(path, unfinished)
        self._samples = SampleBuilder()
        self._events = TraceParser()
        # The number of bytes read of each file.
        self._read: dict[str, int] = {}
        self.ended = False

    @property
    def damaged(self) -> int:
        """Number of lines that could not be read and were skipped."""
        return self._samples.damaged + self._events.damaged

    def read_new(self) -> tuple[list[Sample], list[TraceEvent]]:
        """Return the data added since the last call: samples, and events ordered by start.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
            OSError: a file cannot be read.
        """
        # A listing made after the end was seen is complete.
        ended = any(name in self.files.list_sizes(name) for name in _ENDS)
        samples = [sample for content in self._read_system(ended) for sample in self._samples.add_lines(content)]
        if ended:
            samples += self._samples.finish()
        events: list[TraceEvent] = []
        for name in self.files.list_sizes(_EVENTS):
            match = trace_events.FILE_NAME.fullmatch(name)
            if match and name not in self._read:
                content = self.files.get(name)
                self._read[name] = len(content)
                events += self._events.parse(match[2], content)
        self.ended = ended
        return samples, sorted(events, key=lambda event: event.start)

    def _read_system(self, ended: bool) -> list[bytes]:
        """Return the data added to files of system metrics, in whole lines until the job has ended."""
        found = []
        for name, size in self.files.list_sizes(_SYSTEM).items():
            start = self._read.get(name, 0)
            if size <= start or not system_samples.FILE_NAME.fullmatch(name):
                continue
            try:
                content = self.files.get(name)[start:]
            except FileNotFoundError:
                continue  # it is on its way from the folder of those that grow to the stored ones
            if not ended:
                content = content[: content.rfind(b"\n") + 1]
            self._read[name] = start + len(content)
            found.append(content)
        return found
