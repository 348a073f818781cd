"""Python profiles of a training, between points of its steps."""

import cProfile
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smdebug.tracing.configuration import TracingConfig

_TIMERS: dict[str, Callable[[], float]] = {
    "total_time": time.perf_counter,
    "cpu_time": time.process_time,
    "off_cpu_time": lambda: time.perf_counter() - time.process_time(),
}


class CProfiler:
    """Profiles the calling thread with cProfile, using one of AWS's timers."""

    name = "cprofile"

    def __init__(self, timer: str) -> None:
        """Set the timer by its name."""
        self._timer = _TIMERS[timer]
        self._profile: cProfile.Profile | None = None

    def start(self) -> None:
        """Start profiling."""
        self._profile = cProfile.Profile(self._timer)
        self._profile.enable()

    def stop(self) -> Callable[[Path], None]:
        """Stop profiling, and return a function that writes the profile into a folder."""
        profile, self._profile = self._profile, None
        assert profile is not None
        profile.disable()
        return lambda folder: profile.dump_stats(folder / "python_stats")


class Pyinstrument:
    """Profiles the calling thread with pyinstrument; raises ImportError if it is not installed."""

    name = "pyinstrument"

    def __init__(self) -> None:
        """Import pyinstrument."""
        self._package: Any = importlib.import_module("pyinstrument")
        self._renderers: Any = importlib.import_module("pyinstrument.renderers")
        self._profiler: Any = None

    def start(self) -> None:
        """Start profiling."""
        self._profiler = self._package.Profiler()
        self._profiler.start()

    def stop(self) -> Callable[[Path], None]:
        """Stop profiling, and return a function that writes the profile into a folder."""
        profiler, self._profiler = self._profiler, None
        session = profiler.stop()

        def write(folder: Path) -> None:
            text = self._renderers.JSONRenderer().render(session)
            (folder / "python_stats.json").write_text(json.dumps(json.loads(text)), encoding="utf-8")
            (folder / "python_stats.html").write_text(self._renderers.HTMLRenderer().render(session), encoding="utf-8")

        return write


class PythonProfiles:
    """The profiles of one process, each in a folder named by the points between which it was taken."""

    def __init__(self, profiler: CProfiler | Pyinstrument) -> None:
        """Set the profiler; `place` sets the output folder before the first profile ends."""
        self._profiler = profiler
        self._folder = Path()
        self._begun: str | None = None

    def place(self, folder: Path, framework: str, node: str) -> None:
        """Set the output folder: `framework/<framework>/<profiler>/<node>` below the given one."""
        self._folder = folder / "framework" / framework / self._profiler.name / node

    @property
    def is_profiling(self) -> bool:
        """Whether a profile is in progress."""
        return self._begun is not None

    def begin(self, mode: str, step: object, phase: str) -> None:
        """Start a profile at this point."""
        self._begun = f"{mode}-{step}-{phase}-{time.time_ns() // 1000}"
        self._profiler.start()

    def end(self, mode: str, step: object, phase: str) -> None:
        """Stop the profile in progress, if there is one, and write it."""
        if self._begun is None:
            return
        begun, self._begun = self._begun, None
        write = self._profiler.stop()
        folder = self._folder / f"{begun}_{mode}-{step}-{phase}-{time.time_ns() // 1000}"
        folder.mkdir(parents=True, exist_ok=True)
        write(folder)

    def drop(self) -> None:
        """Stop the profile in progress, if there is one, without writing it."""
        if self._begun is not None:
            self._begun = None
            self._profiler.stop()


def build_profiles(config: TracingConfig) -> PythonProfiles:
    """Return what profiles Python by a job's settings; raises ImportError if that profiler is not installed."""
    return PythonProfiles(CProfiler(config.python_timer) if config.python_profiler == "cprofile" else Pyinstrument())
