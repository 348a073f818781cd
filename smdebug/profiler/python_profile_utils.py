"""Enumerations of Python profiling: modes, step phases, profilers, timers."""

from enum import Enum, IntEnum


class PythonProfileModes(IntEnum):
    """The activity of the training when a profile began or ended."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
    PRE_STEP_ZERO = 5
    POST_HOOK_CLOSE = 6


class StepPhase(Enum):
    """The point in a step at which a profile began or ended."""

    START = "start"
    STEP_START = "stepstart"
    FORWARD_PASS_END = "forwardpassend"  # noqa: S105 -- no password
    STEP_END = "stepend"
    END = "end"


class PythonProfilerName(Enum):
    """The profiler that made a profile."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"


class cProfileTimer(Enum):  # noqa: N801 -- smdebug's name
    """The time that cProfile measures."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"


def str_to_python_profile_mode(mode_str: str) -> PythonProfileModes:
    """Return the mode for its name in a folder's name.

    >>> str_to_python_profile_mode("prestepzero").name
    'PRE_STEP_ZERO'

    Raises:
        KeyError: there is no mode of that name.
    """
    return {python_profile_mode_to_str(mode): mode for mode in PythonProfileModes}[mode_str]


def python_profile_mode_to_str(mode: PythonProfileModes) -> str:
    """Return the name of a mode in a folder's name."""
    return mode.name.lower().replace("_", "")
