"""Readers of system metrics, from a folder or S3."""

from collections.abc import Iterable

from smdebug.profiler.algorithm_metrics_reader import AlgorithmMetricsReader
from smdebug.profiler.metrics_reader_base import MetricsReaderBase, read_time_buffer
from smdebug.profiler.system_profiler_file_parser import ProfilerSystemEvent, build_system_event
from smdebug.profiler.system_samples import FILE_NAME, parse_rows
from smdebug.unsupported import make_unsupported

_MINUTE_US = 60_000_000


class SystemMetricsReader(MetricsReaderBase[ProfilerSystemEvent]):
    """Reads system metrics; see `MetricsReaderBase`."""

    _under = "/system/"

    def _find_times(self, names: Iterable[str]) -> dict[str, int]:
        found = {name: FILE_NAME.fullmatch(name) for name in names}
        return {name: int(match[1]) * 1_000_000 for name, match in found.items() if match}

    def find_step_interval(self, start_step: int, end_step: int) -> tuple[int, int] | None:
        return AlgorithmMetricsReader(self.path).find_step_interval(start_step, end_step)

    def _choose_files(self, start: int, end: int) -> list[str]:
        first = start - _MINUTE_US - read_time_buffer()
        return [name for name, (_, time) in self._known.items() if first <= time <= end + read_time_buffer()]

    def _is_within(self, event: ProfilerSystemEvent, start: int, end: int, event_type: str | None) -> bool:
        return start <= event.timestamp * 1e6 <= end and event_type in (None, event.type)

    def _parse(self, name: str, content: bytes) -> list[ProfilerSystemEvent]:  # noqa: ARG002 -- lines tell the node
        rows, damaged = parse_rows(content)
        self.damaged += damaged
        return [build_system_event(row) for row in rows]


class LocalSystemMetricsReader(SystemMetricsReader):
    """Reads a folder."""


class S3SystemMetricsReader(SystemMetricsReader):
    """Reads `s3://bucket/prefix`."""


S3NumpySystemMetricsReader = make_unsupported(
    "S3NumpySystemMetricsReader", "S3SystemMetricsReader reads the same files."
)
