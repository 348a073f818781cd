"""Placeholders for upstream's parsers of single trace files."""

from smdebug.unsupported import make_unsupported

_REASON = "read the events of a job's trace files with LocalAlgorithmMetricsReader or S3AlgorithmMetricsReader."

SMProfilerEvents = make_unsupported("SMProfilerEvents", _REASON)
TensorboardProfilerEvents = make_unsupported("TensorboardProfilerEvents", _REASON)
HorovodProfilerEvents = make_unsupported("HorovodProfilerEvents", _REASON)
SMDataParallelProfilerEvents = make_unsupported("SMDataParallelProfilerEvents", _REASON)
