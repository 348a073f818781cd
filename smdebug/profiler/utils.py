"""Time units of the profiler, their conversion and their text form."""

import re
from datetime import datetime, timedelta, timezone
from enum import Enum

from smdebug.environment import parse_switch

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SYSTEM_FILE = re.compile(r"(?:^|/)\d+\.(?P<node>[^/.]+)\.json$")
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


def convert_utc_timestamp_to_microseconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> int:
    """Convert a time to whole microseconds.

    >>> convert_utc_timestamp_to_microseconds(1.5, TimeUnits.SECONDS)
    1500000
    """
    return int(timestamp * _MICROSECONDS[unit])


def convert_utc_timestamp_to_seconds(timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS) -> float:
    """Convert a time to seconds."""
    return timestamp * _MICROSECONDS[unit] / 1e6


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> int:
    """Convert a datetime in UTC to microseconds since the epoch."""
    return round(timestamp_datetime.timestamp() * 1e6)


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
    found = _SYSTEM_FILE.search(filename)
    return found["node"] if found else None
