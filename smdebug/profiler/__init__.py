"""Profiles of jobs: readers of system metrics and trace events.

They read from a folder or S3, even while the job is still writing.
"""

from typing import Any

from smdebug.late_import import import_late

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
_HOMES = {name: (f"{__name__}.{module}", name) for module, names in _READERS.items() for name in names}


def __getattr__(name: str) -> Any:
    # Loaded on first use: a training that is traced needs no readers.
    return import_late(__name__, _HOMES, name)
