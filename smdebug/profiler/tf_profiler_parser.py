"""Parsers of single trace files, by who wrote them."""

from datetime import datetime

from smdebug.profiler.trace_event_file_parser import TraceEvent, TraceEventParser
from smdebug.profiler.utils import read_tf_profiler_metadata_file


class SMProfilerEvents(TraceEventParser):
    """Files of the hook."""

    def __init__(self, type: str = "PythontimelineMetrics") -> None:  # noqa: A002 -- as upstream
        super().__init__(type)


class TensorboardProfilerEvents(TraceEventParser):
    """Files of TensorFlow's own profiler, whose times count from the begin that their `.metadata` tells."""

    def __init__(self) -> None:
        super().__init__("TFProfilerMetrics")

    def read_events_from_file(self, tracefile: str) -> None:
        """Add the events of a file; one that cannot be read is logged."""
        content = self._read(tracefile)
        if content is not None:
            _, began, _ = read_tf_profiler_metadata_file(tracefile)
            node = tracefile.rpartition("/")[2].partition(".")[0]
            self._add(self._parser.parse(node, content, float(began)))

    def get_events_within_range(self, start_time: datetime, end_time: datetime) -> list[TraceEvent] | None:  # noqa: ARG002
        """Return None: such times may not be since the epoch."""
        return None


class HorovodProfilerEvents(TraceEventParser):
    """Files of Horovod."""


class SMDataParallelProfilerEvents(TraceEventParser):
    """Files of SMDataParallel."""

    def __init__(self) -> None:
        super().__init__("SMDataParallelMetrics")
