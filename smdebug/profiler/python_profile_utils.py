"""Enumerations of Python profiling: modes, step phases, profilers, timers."""

from enum import Enum, IntEnum


class PythonProfileModes(IntEnum):
    """What the training did when a profile began or ended."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
    PRE_STEP_ZERO = 5
    POST_HOOK_CLOSE = 6


class StepPhase(Enum):
    """Where in a step a profile began or ended."""

    START = "start"
    STEP_START = "stepstart"
    FORWARD_PASS_END = "forwardpassend"  # noqa: S105 -- no password
    STEP_END = "stepend"
    END = "end"


class PythonProfilerName(Enum):
    """Who made a profile."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"


class cProfileTimer(Enum):  # noqa: N801 -- smdebug's name
    """What cProfile counts."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"


def str_to_python_profile_mode(mode_str: str) -> PythonProfileModes:
    """Return the mode of a folder's name.

    >>> str_to_python_profile_mode("prestepzero").name
    'PRE_STEP_ZERO'

    Raises:
        KeyError: there is none of that name.
    """
    return {python_profile_mode_to_str(mode): mode for mode in PythonProfileModes}[mode_str]


def python_profile_mode_to_str(mode: PythonProfileModes) -> str:
    """Return how a folder's name calls a mode."""
    return mode.name.lower().replace("_", "")
