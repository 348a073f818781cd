"""Time units of the profiler, their conversion and their text form."""

import re
from datetime import datetime, timedelta, timezone
from enum import Enum

from smdebug.environment import parse_switch
from smdebug.profiler.profile_files import open_profile_files

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NODE = re.compile(r"(.*?)-(algo.*)")
_TRACE_FILE = re.compile(r"(?:.*/)?(?P<time>\d+)_(?P<node>[^/_]+)_[^/]*\.json")
_DETAILED_FILE = re.compile(r".*tensorflow/detailed_profiling.*trace\.json\.gz")
_SYSTEM_FILE = re.compile(r"(?:.*/)?system/.+/(?P<time>\d{10})\.(?P<node>algo-\d+)\.json")
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S:%f"


class TimeUnits(Enum):
    """Units of time."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


_MICROSECONDS = {
    TimeUnits.SECONDS: 1e6,
    TimeUnits.MILLISECONDS: 1e3,
    TimeUnits.MICROSECONDS: 1,
    TimeUnits.NANOSECONDS: 1e-3,
}


def convert_utc_timestamp_to_microseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> float:
    """Convert a time to microseconds; to whole ones but from nanoseconds, as upstream does.

    >>> convert_utc_timestamp_to_microseconds(1.5, TimeUnits.SECONDS)
    1500000
    """
    microseconds = timestamp * _MICROSECONDS[unit]
    return microseconds if unit is TimeUnits.NANOSECONDS else int(microseconds)


def convert_utc_timestamp_to_seconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> float:
    """Convert a time to seconds; to whole ones but from nanoseconds, as upstream does."""
    seconds = timestamp * _MICROSECONDS[unit] / 1e6
    return seconds if unit is TimeUnits.NANOSECONDS else int(seconds)


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> int:
    """Convert a datetime in UTC to microseconds since the epoch."""
    return round(timestamp_datetime.timestamp() * 1e6)


def convert_utc_datetime_to_nanoseconds(timestamp_datetime: datetime) -> int:
    """Convert a datetime in UTC to nanoseconds since the epoch."""
    return 1000 * convert_utc_datetime_to_microseconds(timestamp_datetime)


def us_since_epoch_to_human_readable_time(us_since_epoch: float) -> str:
    """Format a time in UTC; a time outside the calendar is returned as a number.

    >>> us_since_epoch_to_human_readable_time(1700000040500000)
    '2023-11-14T22:14:00:500000'
    """
    try:
        return (_EPOCH + timedelta(microseconds=us_since_epoch)).strftime(TIME_FORMAT)
    except OverflowError:
        return str(us_since_epoch)


def ns_since_epoch_to_human_readable_time(ns_since_epoch: float) -> str:
    """Format a time in UTC."""
    return us_since_epoch_to_human_readable_time(ns_since_epoch / 1e3)


def convert_utc_timestamp_to_nanoseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """Convert a time to whole nanoseconds."""
    return int(timestamp * _MICROSECONDS[unit] * 1e3)


def str2bool(v: bool | str) -> bool:
    """Return the switch that a text names: yes, true, on or 1, or their opposites; ValueError for any other text.

    >>> str2bool("True"), str2bool("0")
    (True, False)
    """
    return v if isinstance(v, bool) else parse_switch(v)


def get_node_id_from_system_profiler_filename(filename: str) -> str | None:
    """Return the node in the name of a file of system metrics; None for any other name.

    >>> get_node_id_from_system_profiler_filename("system/incremental/2020060500/1591160700.algo-1.json")
    'algo-1'
    """
    found = _SYSTEM_FILE.fullmatch(filename)
    return found["node"] if found else None


def get_utctimestamp_us_since_epoch_from_system_profiler_file(filename: str) -> int | None:
    """Return the time in the name of a file of system metrics in microseconds; None for any other name.

    >>> get_utctimestamp_us_since_epoch_from_system_profiler_file("system/x/1591160700.algo-1.json")
    1591160700000000
    """
    found = _SYSTEM_FILE.fullmatch(filename)
    return int(found["time"]) * 1_000_000 if found else None


def validate_system_profiler_file(filename: str) -> bool:
    """Whether a name is that of a file of system metrics."""
    return _SYSTEM_FILE.fullmatch(filename) is not None


def name_host_first(node: str) -> str:
    """Return the name of a process with its host first, so that the processes of a host are listed together.

    >>> name_host_first("0-algo-1"), name_host_first("0001")
    ('algo-1-0', '0001')
    """
    swapped = _NODE.fullmatch(node)
    return f"{swapped[2]}-{swapped[1]}" if swapped else node


def is_valid_tracefilename(filename: str) -> bool:
    """Whether a name is that of a file of trace events, which has a time, a node and a kind."""
    return "pevents" in filename and filename.endswith(".json") and filename.count("_") > 1


def is_valid_tfprof_tracefilename(filename: str) -> bool:
    """Whether a name is that of a file of TensorFlow's own profiler."""
    return _DETAILED_FILE.fullmatch(filename) is not None


def get_node_id_from_tracefilename(filename: str) -> str:
    """Return the process that has written a file of trace events; empty where that is not known.

    >>> get_node_id_from_tracefilename("framework/pevents/2020052602/1590461139923994_0001_model_timeline.json")
    '0001'
    """
    found = _TRACE_FILE.fullmatch(filename) if is_valid_tracefilename(filename) else None
    return found["node"] if found else read_tf_profiler_metadata_file(filename)[0]


def get_timestamp_from_tracefilename(filename: str) -> int:
    """Return when the last event of a file of trace events ended, in microseconds; 0 where that is not known.

    >>> get_timestamp_from_tracefilename("framework/pevents/2020052602/1590461139923994_0001_model_timeline.json")
    1590461139923994
    """
    found = _TRACE_FILE.fullmatch(filename) if is_valid_tracefilename(filename) else None
    return int(found["time"] if found else read_tf_profiler_metadata_file(filename)[2])


def read_tf_profiler_metadata_file(file_path: str) -> tuple[str, str, str]:
    """Return node, begin and end of a profile of TensorFlow, from the name of the empty file beside it.

    The times are microseconds since the epoch. Without such a file the answer is ``("", "0", "0")``.
    """
    if not is_valid_tfprof_tracefilename(file_path):
        return "", "0", "0"
    folder = file_path.rsplit("/", 4)[0]
    names = sorted(name for name in open_profile_files(folder).list_sizes("/") if name.endswith(".metadata"))
    parts = names[0].rpartition("/")[2].removesuffix(".metadata").rsplit("_", 2) if names else []
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "0", "0")
