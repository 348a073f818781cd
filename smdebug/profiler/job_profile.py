"""Incremental reader of a running job's profile.

It returns each sample and each event once.
"""

from smdebug.profiler import system_samples, trace_events
from smdebug.profiler.profile_files import open_profile_files
from smdebug.profiler.system_samples import Sample, SampleBuilder
from smdebug.profiler.trace_events import TraceEvent, TraceParser

_SYSTEM = "/system/"
_EVENTS = "/framework/pevents/"
# Either of them says that no more comes.
_ENDS = ("/system/training_job_end.ts", "/framework/training_job_end.ts")


class JobProfile:
    """Follows the files of one job.

    Args:
        path: `profiler-output`, as a folder or `s3://bucket/prefix`.
        unfinished: a folder in which those of its files lie that are not whole yet.

    Raises:
        SMDebugValueError: the path names no bucket.

    Attributes:
        ended: whether no more comes.
        files: all that there are.
    """

    def __init__(self, path: str, unfinished: str | None = None) -> None:
        self.files = open_profile_files(path, unfinished)
        self._samples = SampleBuilder()
        self._events = TraceParser()
        # Bytes of each file that were read.
        self._read: dict[str, int] = {}
        self.ended = False

    @property
    def damaged(self) -> int:
        """How many lines could not be read and were passed over."""
        return self._samples.damaged + self._events.damaged

    def read_new(self) -> tuple[list[Sample], list[TraceEvent]]:
        """Return what has come since the last call: samples, and events by their start.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
            OSError: a file cannot be read.
        """
        # What is listed after the end was seen is all there is.
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
        """Return what files of system metrics have more than before, in whole lines until the job has ended."""
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
