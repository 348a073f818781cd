"""Import alias of the profiler trial."""

from smdebug.profiler.profiler_trial import ProfilerTrial

__all__ = ["ProfilerTrial"]
