"""Readers of trace events, from a folder or S3."""

import gzip
import re
import zlib
from collections.abc import Iterable

from smdebug.profiler import trace_events
from smdebug.profiler.metrics_reader_base import MetricsReaderBase, read_time_buffer
from smdebug.profiler.profiler_constants import DEFAULT_PREFIX, LAST, PYTHONTIMELINE_SUFFIX, SUFFIXES
from smdebug.profiler.trace_event_file_parser import TraceEvent, build_event
from smdebug.profiler.utils import name_host_first

_DETAILED = re.compile(r"(.*/detailed_profiling/.+)/plugins/profile/.+trace\.json\.gz")
_METADATA = re.compile(r"(.*/detailed_profiling/.+)/([^/_]+)_(\d+)_(\d+)\.metadata")
# By suffix, in the order of SUFFIXES; the last is that of any other file.
_FILE_TYPES = (
    "PythontimelineMetrics",
    "DetailedframeworkMetrics",
    "TFProfilerMetrics",
    "",
    "SMDataParallelMetrics",
    "",
)


class AlgorithmMetricsReader(MetricsReaderBase[TraceEvent]):
    """Reads trace events of the hook, the framework, Horovod and SMDataParallel; see `MetricsReaderBase`."""

    _under = "/framework/"

    def _find_times(self, names: Iterable[str]) -> dict[str, int]:
        names = list(names)
        found: dict[str, int] = {}
        # The node and the time of a TensorFlow profile, from the name of an empty file beside it.
        self._metadata = {match[1]: match for name in names if (match := _METADATA.fullmatch(name))}
        for name in names:
            match, detailed = trace_events.FILE_NAME.fullmatch(name), _DETAILED.fullmatch(name)
            if match and f"/{DEFAULT_PREFIX}/" in name:
                found[name] = int(match[1])
            elif detailed:
                told = self._metadata.get(detailed[1])
                found[name] = int(told[4]) if told else 0
        return found

    def find_step_interval(self, start_step: int, end_step: int) -> tuple[int, int] | None:
        firsts: dict[str, int] = {}
        for event in self.get_events(0, LAST, file_suffix_filter=[PYTHONTIMELINE_SUFFIX]):
            step = str((event.event_args or {}).get("step_num"))
            firsts[step] = min(firsts.get(step, event.start_time), event.start_time)
        first, last = (firsts.get(str(step)) for step in (start_step, end_step))
        return None if first is None or last is None else (first, last - 1)

    def _choose_files(self, start: int, end: int) -> list[str]:
        buffer = read_time_buffer()
        chosen: list[str] = []
        passed: set[str] = set()
        for name, (_, time) in self._known.items():
            writer = name.rpartition("/")[2].partition("_")[2]
            # An event that began in the interval and ended after it is in the next file of the same writer.
            if time >= start - buffer and writer not in passed:
                chosen.append(name)
                if time > end + buffer:
                    passed.add(writer)
        return sorted(chosen, key=find_suffix)

    def _is_within(self, event: TraceEvent, start: int, end: int, event_type: str | None) -> bool:
        return event.start_time <= end and event.end_time >= start and event_type in (None, event.event_phase)

    def _parse(self, name: str, content: bytes) -> list[TraceEvent]:
        parser = trace_events.TraceParser()
        base_us, node = 0.0, name.rpartition("/")[2].split("_")[1 if "_" in name.rpartition("/")[2] else 0]
        detailed = _DETAILED.fullmatch(name)
        if detailed:
            told = self._metadata.get(detailed[1])
            node, base_us = name.rpartition("/")[2].partition(".")[0], float(told[3]) if told else 0.0
            try:
                content = gzip.decompress(content)
            except (OSError, EOFError, zlib.error):
                self.damaged += 1
                return []
        node = name_host_first(node)
        kind = _FILE_TYPES[find_suffix(name)]
        found = [build_event(event, kind) for event in parser.parse(node, content, base_us)]
        self.damaged += parser.damaged
        return found


def find_suffix(name: str) -> int:
    """Return the index of the suffix that a file's name ends in; the number of suffixes if there is none."""
    return next((at for at, suffix in enumerate(SUFFIXES) if name.endswith(suffix)), len(SUFFIXES))


class LocalAlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads a folder."""


class S3AlgorithmMetricsReader(AlgorithmMetricsReader):
    """Reads `s3://bucket/prefix`."""
