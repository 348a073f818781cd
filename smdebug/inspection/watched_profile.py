"""Open profiles, which are read incrementally and kept as numbers."""

import re
from dataclasses import dataclass

from smdebug.profiler.summary.job_profile import JobProfile
from smdebug.profiler.summary.usage_series import UsageSeries
from smdebug.profiler.summary.where_time_goes import LoopTime

# <framework>/<profiler>/<process>/<from>_<to>/<file>
_PYTHON_PROFILE = re.compile(
    r"/framework/([^/]+)/(cprofile|pyinstrument)/([^/]+)/"
    r"((\w+)-(\*|\d+)-(\w+)-(\d+)_(\w+)-(\*|\d+)-(\w+)-(\d+))/python_stats(?:\.json)?"
)


@dataclass(frozen=True)
class PythonProfile:
    """A Python profile of one process.

    Attributes:
        file: the name of the file in the profile of the job.
        begin, end: mode, step and point of the step.
        begin_s, end_s: times in seconds since the epoch.
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


class WatchedProfile(JobProfile):
    """The profile of a job, open for questions from one thread; arguments and errors as in `JobProfile`.

    Attributes:
        usage: the resource usage of each node.
        time: the time of each process by phase.
    """

    def __init__(self, path: str, unfinished: str | None = None) -> None:
        super().__init__(path, unfinished)
        self.usage = UsageSeries()
        self.time = LoopTime()

    def read_on(self) -> None:
        """Read what was added since the last call; errors as in `read_new`."""
        if not self.ended:
            samples, events = self.read_new()
            self.usage.add(samples)
            self.time.add(events)

    def find_span(self) -> tuple[float, float] | None:
        """Return the time span of all data in seconds since the epoch; None if there is no data."""
        spans = [span for span in (self.usage.find_span(), self.time.find_span()) if span]
        return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else None

    def list_python_profiles(self) -> list[PythonProfile]:
        """Return the Python profiles, sorted by time and process."""
        found = []
        for file in self.files.list_sizes("/framework/"):
            if match := _PYTHON_PROFILE.fullmatch(file):
                framework, profiler, process, name, *points = match.groups()
                begin, end = (points[0], points[1], points[2]), (points[4], points[5], points[6])
                times = int(points[3]) / 1e6, int(points[7]) / 1e6
                found.append(PythonProfile(file, framework, profiler, process, name, begin, end, *times))
        return sorted(found, key=lambda each: (each.begin_s, each.process))
