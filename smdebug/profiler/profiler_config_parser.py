"""Placeholders for upstream's parser of the profiler's configuration."""

from smdebug.unsupported import make_unsupported

_REASON = "`smdebug.tracing.configuration` reads a job's profiler configuration, and hooks apply it by themselves."

LastProfilingStatus = make_unsupported("LastProfilingStatus", _REASON)
MetricsCategory = make_unsupported("MetricsCategory", _REASON)
ProfilerConfigParser = make_unsupported("ProfilerConfigParser", _REASON)
ProfilingParametersField = make_unsupported("ProfilingParametersField", _REASON)
get_profiler_config_parser = make_unsupported("get_profiler_config_parser", _REASON)
reset_profiler_config_parser = make_unsupported("reset_profiler_config_parser", _REASON)
