"""A profiled job that is looked at again and again: what it has left is read once, and kept as numbers."""

import re
from dataclasses import dataclass

from smdebug.profiler.job_profile import JobProfile
from smdebug.profiler.usage_series import UsageSeries
from smdebug.profiler.where_time_goes import LoopTime

# <framework>/<profiler>/<process>/<from>_<to>/<file>
_PYTHON_PROFILE = re.compile(
    r"/framework/([^/]+)/(cprofile|pyinstrument)/([^/]+)/"
    r"((\w+)-(\*|\d+)-(\w+)-(\d+)_(\w+)-(\*|\d+)-(\w+)-(\d+))/python_stats(?:\.json)?"
)


@dataclass(frozen=True)
class PythonProfile:
    """A profile of Python's: its file, whose it is, and from where to where it was made.

    Attributes:
        file: its name in the profile.
        begin, end: mode, step and point of the step.
        begin_s, end_s: in seconds since the epoch.
    """

    file: str
    framework: str
    profiler: str
    process: str
    name: str
    begin: tuple[str, str, str]
    end: tuple[str, str, str]
    begin_s: float
    end_s: float


class WatchedProfile:
    """One profile, open for questions; asked by one thread.

    Args:
        path: the job's `profiler-output`, as a folder or `s3://bucket/prefix`.
        unfinished: a folder in which those of its files lie that are not whole yet.

    Raises:
        SMDebugError: the path names no bucket.

    Attributes:
        usage: what each node used.
        time: where the time of each process went.
    """

    def __init__(self, path: str, unfinished: str | None = None) -> None:
        self._profile = JobProfile(path, unfinished)
        self.usage = UsageSeries()
        self.time = LoopTime()

    @property
    def ended(self) -> bool:
        """Whether no more comes."""
        return self._profile.ended

    @property
    def damaged(self) -> int:
        """How many lines could not be read and were passed over."""
        return self._profile.damaged

    def read_on(self) -> None:
        """Take note of what has come since the last call.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
            OSError: a file cannot be read.
        """
        if self.ended:
            return
        samples, events = self._profile.read_new()
        self.usage.add(samples)
        self.time.add(events)

    def find_span(self) -> tuple[float, float] | None:
        """Return when the first and the last of all was, in seconds since the epoch; None where nothing has come."""
        spans = [span for span in (self.usage.find_span(), self.time.find_span()) if span]
        return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None

    def list_python_profiles(self) -> list[PythonProfile]:
        """Return the profiles of Python by time and process."""
        found = []
        for file in self._profile.files.list_sizes("/framework/"):
            if match := _PYTHON_PROFILE.fullmatch(file):
                framework, profiler, process, name, *points = match.groups()
                begin, end = (points[0], points[1], points[2]), (points[4], points[5], points[6])
                times = int(points[3]) / 1e6, int(points[7]) / 1e6
                found.append(PythonProfile(file, framework, profiler, process, name, begin, end, *times))
        return sorted(found, key=lambda each: (each.begin_s, each.process))

    def read(self, file: str) -> bytes:
        """Return a file of the profile.

        Raises:
            FileNotFoundError: it is gone.
        """
        return self._profile.files.get(file)
