"""One Python profile, and statistics of its functions."""

import pstats
from enum import Enum
from typing import Any

import pandas as pd

from smdebug.exceptions import SMDebugTypeError
from smdebug.profiler.python_profile_utils import PythonProfileModes, StepPhase, str_to_python_profile_mode

__all__ = [
    "Metrics",
    "PyinstrumentStepStats",
    "PythonProfileModes",
    "StepPhase",
    "StepPythonProfileStats",
    "cProfileFunctionStats",
    "cProfileStats",
]

_BEFORE_ALL, _AFTER_ALL = -1, float("inf")


class Metrics(Enum):
    """The metrics by which functions can be sorted."""

    TOTAL_TIME = "tottime"
    CUMULATIVE_TIME = "cumtime"
    PRIMITIVE_CALLS = "pcalls"
    TOTAL_CALLS = "ncalls"


class StepPythonProfileStats:
    """Begin and end of a profile, parsed from the name of its folder.

    Args:
        framework: such as pytorch.
        profiler_name: cprofile or pyinstrument.
        node_id: name of the process.
        stats_dir: `<mode>-<step>-<phase>-<us>_<mode>-<step>-<phase>-<us>`.
        stats_path: the local file.

    Raises:
        ValueError, KeyError: the folder's name has another form.

    Attributes:
        start_mode, end_mode: a PythonProfileModes.
        start_step, end_step: -1 means before the first step, infinity after the hook was closed.
        start_phase, end_phase: a StepPhase.
        start_time_since_epoch_in_micros, end_time_since_epoch_in_micros: UTC.
    """

    def __init__(self, framework: str, profiler_name: str, node_id: str, stats_dir: str, stats_path: str) -> None:
        (start_mode, start_step, start_phase, start), (end_mode, end_step, end_phase, end) = (
            each.split("-") for each in stats_dir.split("_")
        )
        self.profiler_name = profiler_name
        self.framework = framework
        self.node_id = node_id
        self.start_mode = str_to_python_profile_mode(start_mode)
        self.start_step: float = _BEFORE_ALL if start_step == "*" else int(start_step)
        self.start_phase = StepPhase(start_phase)
        self.start_time_since_epoch_in_micros = float(start)
        self.end_mode = str_to_python_profile_mode(end_mode)
        self.end_step: float = _AFTER_ALL if end_step == "*" else int(end_step)
        self.end_phase = StepPhase(end_phase)
        self.end_time_since_epoch_in_micros = float(end)
        self.stats_path = stats_path

    def has_start_and_end_mode(self, start_mode: PythonProfileModes, end_mode: PythonProfileModes) -> bool:
        """Whether the profile began and ended in these modes."""
        return (self.start_mode, self.end_mode) == (start_mode, end_mode)

    def in_time_interval(self, start: float, end: float) -> bool:
        """Whether the profile overlaps an interval in microseconds since the epoch."""
        return self.start_time_since_epoch_in_micros <= end and self.end_time_since_epoch_in_micros >= start

    def in_step_interval(
        self, start_step: float, end_step: float, start_phase: StepPhase, end_phase: StepPhase
    ) -> bool:
        """Whether the profile lies between a phase of one step and a phase of another, as upstream has it.

        A profile that lasts until the beginning of the next step ends in that step. Phases narrow the first and last
        step only as far as upstream's do: a first phase other than the beginning of a step, and a last one that is.
        """
        if self.start_step < start_step or self.end_step > end_step:
            return False
        begins_late = self.start_step == start_step and start_phase in (StepPhase.STEP_END, StepPhase.FORWARD_PASS_END)
        if begins_late and self.start_phase is not start_phase:
            return False
        return self.end_step != end_step or end_phase is not StepPhase.STEP_START or self.end_phase is end_phase

    def has_pre_step_zero_profile_stats(self) -> bool:
        """Whether the profile is from before the first step."""
        return self.start_phase is StepPhase.START

    def has_post_hook_close_profile_stats(self) -> bool:
        """Whether the profile is from after the hook was closed."""
        return self.end_phase is StepPhase.END

    def has_node_id(self, node_id: str) -> bool:
        """Whether the profile is of this process."""
        return self.node_id == node_id

    def __repr__(self) -> str:
        return repr(vars(self))


class cProfileFunctionStats:  # noqa: N801 -- smdebug's name
    """Statistics of one function in a profile; times in seconds.

    Args:
        key: file, line and name.
        value: primitive calls, calls, own time, cumulative time, callers.
    """

    def __init__(self, key: Any, value: Any) -> None:
        self.function_name = _name(key)
        self.prim_calls, self.total_calls, self.total_time, self.cumulative_time, callers = value
        self.callers = [_name(each) for each in callers]

    def __repr__(self) -> str:
        return repr(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return the statistics by name."""
        return {
            "function name": self.function_name,
            "# of primitive calls": self.prim_calls,
            "# of total calls": self.total_calls,
            "total time": self.total_time,
            "cumulative time": self.cumulative_time,
        }


class cProfileStats:  # noqa: N801 -- smdebug's name
    """Combined statistics of cProfile profiles.

    Attributes:
        ps: as `pstats.Stats`.
        function_stats_list: statistics of each function.
    """

    def __init__(self, ps: pstats.Stats) -> None:
        self.ps = ps
        self.function_stats_list = [cProfileFunctionStats(key, value) for key, value in vars(ps)["stats"].items()]

    def print_top_n_functions(self, by: Metrics, n: int = 10) -> None:
        """Print the top functions by a metric.

        Raises:
            SMDebugTypeError: `by` is not a Metrics, or `n` is not a whole number.
        """
        if not isinstance(by, Metrics) or not isinstance(n, int):
            raise SMDebugTypeError(f"by is {by!r} and n {n!r}, expected a member of Metrics and a whole number.")
        self.ps.sort_stats(by.value).print_stats(n)

    def get_function_stats(self) -> pd.DataFrame:
        """Return a row for each function."""
        return pd.DataFrame([each.describe() for each in self.function_stats_list])


class PyinstrumentStepStats:
    """A profile of pyinstrument.

    Attributes:
        html_file_path: its HTML page.
        json_stats: its tree of calls.
    """

    def __init__(self, html_file_path: str | None, json_stats: Any) -> None:
        self.html_file_path = html_file_path
        self.json_stats = json_stats


def _name(key: tuple[str, int, str]) -> str:
    """Return the name of a function as pstats prints it.

    >>> _name(("train.py", 7, "main")), _name(("~", 0, "<built-in method builtins.sum>"))
    ('train.py:7(main)', '{built-in method builtins.sum}')
    """
    file, line, name = key
    if (file, line) != ("~", 0):
        return f"{file}:{line}({name})"
    return f"{{{name[1:-1]}}}" if name.startswith("<") and name.endswith(">") else name
