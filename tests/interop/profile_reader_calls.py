"""Script that prints what each reader of profiles tells of one folder.

Interpreters with the real smdebug 1.0.34 and with ours run it.

python profile_reader_calls.py FOLDER
"""

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

folder = Path(sys.argv[1])
# By name: a checker of types would look for them in our own smdebug.
profiler: Any = import_module("smdebug.profiler")
utils: Any = import_module("smdebug.profiler.utils")
frames: Any = import_module("smdebug.profiler.analysis.utils.profiler_data_to_pandas")
merging: Any = import_module("smdebug.profiler.analysis.utils.merge_timelines")
Units = utils.TimeUnits
MINUTE = 1_700_000_040
RANGES = ((0, 4e9), (MINUTE, MINUTE + 1), (MINUTE + 1.25, MINUTE + 61), (MINUTE + 60.5, 4e9), (0, 0))

SUFFIXES = ("pythontimeline.json", "model_timeline.json", "trace.json.gz", "horovod_timeline.json")


def tell_measures(events: Iterable[Any]) -> list[Any]:
    return [[each.type, each.name, each.dimension, each.value, each.node_id, each.timestamp] for each in events]


def tell_events(events: Iterable[Any], *, sort: bool = False) -> list[Any]:
    # A thread's number is made up anew by upstream where the file tells none.
    names = "event_phase event_name start_time duration end_time node_id pid phase_pid event_args file_type phase"
    found = [[getattr(each, name) for name in names.split()] for each in events]
    return sorted(found, key=repr) if sort else found


def read_measures(make: Any) -> Iterator[tuple[str, Any]]:
    for caches in (False, True):
        reader = make(str(folder), use_in_memory_cache=caches)
        for start, end in RANGES:
            yield f"{caches} {start} {end}", tell_measures(reader.get_events(start, end, unit=Units.SECONDS))
        yield "cpu", tell_measures(reader.get_events(0, 4e9, Units.SECONDS, "cpu"))
        yield "microseconds", tell_measures(reader.get_events(MINUTE * 10**6, (MINUTE + 1) * 10**6))
        yield "milliseconds", tell_measures(reader.get_events(MINUTE * 1e3, MINUTE * 1e3 + 500, Units.MILLISECONDS))
        yield "first", reader.get_timestamp_of_first_available_file()
        yield "last", reader.get_timestamp_of_latest_available_file()


def read_events(make: Any) -> Iterator[tuple[str, Any]]:
    for caches in (False, True):
        reader = make(str(folder), use_in_memory_cache=caches)
        for start, end in RANGES:
            yield f"{caches} {start} {end}", tell_events(reader.get_events(start, end, unit=Units.SECONDS), sort=True)
        # With a cache, upstream filters nothing of what it has read before.
        for suffix in () if caches else SUFFIXES:
            found = reader.get_events(0, 4e9, Units.SECONDS, file_suffix_filter=[suffix])
            yield suffix, tell_events(found)
        for steps in () if caches else ((0, 1), (1, 2), (0, 2)):
            yield f"steps {steps}", tell_events(reader.get_events_by_step(*steps), sort=True)
        yield "first", reader.get_timestamp_of_first_available_file()
        yield "last", reader.get_timestamp_of_latest_available_file()


def parse_file(parser: Any, path: Path) -> Iterator[tuple[str, Any]]:
    parser.read_events_from_file(str(path))
    yield "all", tell_events(parser.get_all_events())
    yield "by start", [each.start_time for each in parser.get_events_start_time_sorted()]
    yield "by end", [each.end_time for each in parser.get_events_end_time_sorted()]
    for start, end in RANGES:
        yield f"{start} {end}", tell_events(parser.get_events_within_time_range(start, end, unit=Units.SECONDS))
    moments = [datetime.fromtimestamp(each, tz=UTC) for each in (MINUTE, MINUTE + 1.5)]
    found = parser.get_events_within_range(*moments)
    yield "moments", None if found is None else tell_events(found)
    yield "rows", sorted([str(key), str(each.name)] for key, each in parser.get_processes().items())
    for event in parser.get_all_events():
        row = parser.get_process_info(event.phase_pid)
        yield f"row {event.phase_pid}", row.name
    parser.clear_events()
    yield "cleared", len(parser.get_all_events())


def parse_measures(path: Path) -> Iterator[tuple[str, Any]]:
    parser = profiler.ProfilerSystemEvents()
    parser.read_events_from_file(str(path))
    yield "all", tell_measures(parser.get_all_events())
    for start, end in RANGES:
        yield f"{start} {end}", tell_measures(parser.get_events_within_time_range(start, end, unit=Units.SECONDS))
    yield "gpu", tell_measures(parser.get_events_within_time_range(0, 4e9, Units.SECONDS, "gpu"))
    parser.clear_events()
    yield "cleared", len(parser.get_all_events())


def name_parts(path: Path) -> Iterator[tuple[str, Any]]:
    for function in (
        "get_node_id_from_system_profiler_filename",
        "get_utctimestamp_us_since_epoch_from_system_profiler_file",
        "get_node_id_from_tracefilename",
        "get_timestamp_from_tracefilename",
        "is_valid_tracefilename",
        "is_valid_tfprof_tracefilename",
        "validate_system_profiler_file",
        "read_tf_profiler_metadata_file",
    ):
        yield function, getattr(utils, function)(str(path))


def convert_times() -> Iterator[tuple[str, Any]]:
    for unit in Units:
        for target in ("seconds", "microseconds", "nanoseconds"):
            yield f"{unit} {target}", getattr(utils, f"convert_utc_timestamp_to_{target}")(1500, unit)


def read_frames() -> Iterator[tuple[str, Any]]:
    frame = frames.PandasFrame(str(folder))
    span = MINUTE * 10**6, (MINUTE + 1) * 10**6
    for name, table in zip(("system", "framework"), frame.get_profiler_data_by_time(*span), strict=True):
        yield f"by time {name}", [list(table.columns), len(table)]
    for name, table in zip(("system", "framework"), frame.get_profiler_data_by_step(0, 1), strict=True):
        yield f"by step {name}", [list(table.columns), len(table)]


def merge() -> Iterator[tuple[str, Any]]:
    written = folder.parent / f"{folder.name}-merged-{'ours' if hasattr(profiler, '__getattr__') else 'original'}"
    written.mkdir(exist_ok=True)
    merging.MergedTimeline(str(folder), output_directory=str(written)).merge_timeline(
        MINUTE * 10**6, (MINUTE + 120) * 10**6, unit=merging.MergeUnit.TIME
    )
    for path in written.glob("**/*.json"):
        items = json.loads(path.read_text())
        yield "merged", sorted([each["name"], each["ts"]] for each in items if each["ph"] == "X")


found: dict[str, Any] = {}
for name, results in {
    "system": read_measures(profiler.LocalSystemMetricsReader),
    "framework": read_events(profiler.LocalAlgorithmMetricsReader),
    "frames": read_frames(),
    "times": convert_times(),
    "merged": merge(),
}.items():
    for call, result in results:
        found[f"{name} {call}"] = result
PARSERS = {
    "pythontimeline.json": profiler.SMProfilerEvents,
    "model_timeline.json": profiler.SMProfilerEvents,
    "horovod_timeline.json": profiler.HorovodProfilerEvents,
    "trace.json.gz": profiler.TensorboardProfilerEvents,
}
for path in sorted(each for each in folder.rglob("*") if each.is_file()):
    place = str(path.relative_to(folder))
    for call, result in name_parts(path):
        found[f"{place} {call}"] = result
    if "/incremental/" in str(path):
        for call, result in parse_measures(path):
            found[f"{place} {call}"] = result
    for suffix, parser in PARSERS.items():
        if path.name.endswith(suffix):
            for call, result in parse_file(parser(), path):
                found[f"{place} {call}"] = result
sys.stdout.write(f"\nFOUND {json.dumps(found, default=str)}\n")
