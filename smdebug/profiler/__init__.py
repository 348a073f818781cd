"""Profiles of jobs: readers of system metrics and trace events.

They read from a folder or S3, even while the job is still writing.
"""

from importlib import import_module
from typing import Any

_READERS = {
    "algorithm_metrics_reader": ("LocalAlgorithmMetricsReader", "S3AlgorithmMetricsReader"),
    "metrics_reader_base": ("MetricsReaderBase",),
    "system_metrics_reader": ("LocalSystemMetricsReader", "S3NumpySystemMetricsReader", "S3SystemMetricsReader"),
    "system_profiler_file_parser": ("ProfilerSystemEvents", "SystemProfilerEventParser"),
    "tf_profiler_parser": (
        "HorovodProfilerEvents",
        "SMDataParallelProfilerEvents",
        "SMProfilerEvents",
        "TensorboardProfilerEvents",
    ),
    "trace_event_file_parser": ("TraceEvent", "TraceEventParser"),
}
_MODULES = {name: module for module, names in _READERS.items() for name in names}


def __getattr__(name: str) -> Any:
    # Loaded on first use: a training that is traced needs no readers.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
