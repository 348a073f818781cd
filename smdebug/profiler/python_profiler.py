"""Placeholders for upstream's Python profilers."""

from smdebug.unsupported import make_unsupported

_REASON = "jobs are profiled as their ProfilerConfig says, and a script starts no profiler itself."

PythonProfiler = make_unsupported("PythonProfiler", _REASON)
cProfilePythonProfiler = make_unsupported("cProfilePythonProfiler", _REASON)  # noqa: N816 -- smdebug's name
cProfileDefaultPythonProfiler = make_unsupported("cProfileDefaultPythonProfiler", _REASON)  # noqa: N816 -- likewise
PyinstrumentPythonProfiler = make_unsupported("PyinstrumentPythonProfiler", _REASON)
