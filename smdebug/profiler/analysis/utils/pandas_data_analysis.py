"""Statistics of `PandasFrame`'s data frames."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

_STEP = "Step:ModeKeys"
_STEP_ZERO = ("Step:ModeKeys.TRAIN", "Step:ModeKeys.GLOBAL")
_RANGES = ((90, 100), (10, 90), (0, 10))


class StatsBy(Enum):
    """What statistics are grouped by."""

    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class Resource(Enum):
    """Types of system metrics."""

    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


# The order of upstream's tables.
_RESOURCES = (Resource.CPU, Resource.GPU, Resource.MEMORY, Resource.IO, Resource.NETWORK)


class JobStats(dict[str, Any]):
    """A job's statistics by name, shown as a table."""

    def __repr__(self) -> str:
        return repr(pd.Series(self, dtype=object).to_frame(""))


class PandasFrameAnalysis:
    """Statistics of frames of system metrics and trace events.

    Args:
        system_df: result of `PandasFrame.get_all_system_metrics`.
        framework_df: result of `PandasFrame.get_all_framework_metrics`. An event without a step number gets the step
            during which it happened. The frame with these steps and with durations is kept as `framework_metrics_df`.
    """

    def __init__(self, system_df: pd.DataFrame, framework_df: pd.DataFrame) -> None:
        self.sys_metrics_df = system_df
        frame = framework_df.copy()
        frame["duration_us"] = frame["end_time_us"] - frame["start_time_us"]
        self.framework_metrics_df = frame
        named = frame[frame["framework_metric"].astype(str).str.contains(_STEP) & (frame["step"] != -1)]
        self.step_time_df = (
            named.groupby("step").agg(start_time_us=("start_time_us", "min"), end_time_us=("end_time_us", "max"))
        ).reset_index()
        if not self.step_time_df.empty:
            self._fill_in_steps()

    def _fill_in_steps(self) -> None:
        frame, steps = self.framework_metrics_df, self.step_time_df.sort_values("start_time_us")
        # The last step that began before an event. Steps of processes may overlap; then any of them will do.
        at = steps["start_time_us"].searchsorted(frame["start_time_us"], side="right") - 1
        at_or_first = at.clip(0)
        lies_in = (at >= 0) & (steps["end_time_us"].to_numpy()[at_or_first] >= frame["end_time_us"].to_numpy())
        missing = (frame["step"] == -1).to_numpy() & lies_in
        frame.loc[missing, "step"] = steps["step"].to_numpy()[at_or_first][missing]

    def get_job_statistics(self) -> JobStats:
        """Return begin and end of the job and its training loop, and the durations of its parts, in µs and %.

        If no step was traced, only the statistics of the job are returned.

        Raises:
            SMDebugValueError: there are no system metrics.
        """
        system, framework = self.sys_metrics_df, self.framework_metrics_df
        if system.empty:
            raise SMDebugValueError("The frame of system metrics is empty: there is nothing to tell of the job.")
        begin, end = system["timestamp_us"].min(), system["timestamp_us"].max()
        stats = JobStats(start_time=system["timestamp"].min(), end_time=system["timestamp"].max())
        stats["job_duration"] = end - begin
        firsts = framework[framework["framework_metric"].isin(_STEP_ZERO)].sort_values("start_time_us")
        if firsts.empty:
            return stats
        first, last = firsts.iloc[0], framework["end_time_us"].max()
        stats["training_loop_start"], stats["training_loop_end"] = first["start_time"], framework["end_time"].max()
        parts = {
            "training_loop_duration": last - first["start_time_us"],
            "initialization": first["start_time_us"] - begin,
            "finalization": end - last,
        }
        stats.update(parts)
        for name, part in parts.items():
            share = 100 * part / stats["job_duration"] if stats["job_duration"] else 0.0
            stats[f"{name.removesuffix('_duration')}_%"] = float(share)
        return stats

    def get_step_statistics(self, by: StatsBy = StatsBy.TRAINING_PHASE) -> pd.DataFrame:
        """Return mean, min, max, p50, p95 and p99 of the duration of steps, or of the phases or names in them.

        Raises:
            SMDebugTypeError: `by` is not a StatsBy.
        """
        if not isinstance(by, StatsBy):
            raise SMDebugTypeError(f"by is {by!r}, expected a member of StatsBy.")
        frame, column = self.framework_metrics_df, by.value
        if by is StatsBy.TRAINING_PHASE:
            column = StatsBy.FRAMEWORK_METRICS.value
            frame = frame[frame[column].astype(str).str.contains(_STEP)]
        spans = frame.groupby(["step", column]).agg(begin=("start_time_us", "min"), end=("end_time_us", "max"))
        stats = _describe((spans["end"] - spans["begin"]).groupby(level=column), "duration_{}_us")
        return stats.reset_index(names=by.value)

    def get_utilization_stats(
        self,
        resource: Resource | Sequence[Resource] | None = None,
        by: StatsBy | None = None,
        phase: str | Sequence[str] | None = None,
    ) -> pd.DataFrame:
        """Return mean, min, max, p50, p95 and p99 of types of system metrics by node.

        Args:
            resource: types; None: all.
            by: StatsBy.TRAINING_PHASE groups by training phase as well.
            phase: phases to divide the time by, see `get_training_phase_intervals`.

        Raises:
            SMDebugTypeError: `resource` or `by` has another type.
        """
        if by not in (None, StatsBy.TRAINING_PHASE):
            raise SMDebugTypeError(f"by is {by!r}, expected None or StatsBy.TRAINING_PHASE.")
        frame, groups, heads = self.sys_metrics_df, ["nodeID"], ["nodeID"]
        if by is not None:
            frame, groups = self._add_phases(phase), ["phase", "nodeID"]
            heads = ["Training_phase", "nodeID"]
        tables = []
        for each in _list_resources(resource, _RESOURCES):
            rows = frame[frame["type"] == each.value]
            if not rows.empty:
                table = _describe(rows.groupby(groups)["value"], "utilization_{}").reset_index(names=heads)
                table.insert(0, "Resource", each.value)
                tables.append(table)
        columns = ["Resource", *heads, *(f"utilization_{each}" for each in ("mean", "min", "max", "p50", "p95", "p99"))]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)

    def get_device_usage_stats(
        self,
        device: Resource | Sequence[Resource] | None = None,
        utilization_ranges: Sequence[tuple[float, float]] | None = None,
    ) -> pd.DataFrame:
        """Return by type and node the number of values in each range, one column per range, the lowest first.

        A value on an edge counts in the first range that contains it.

        Args:
            device: types; None: cpu and gpu.
            utilization_ranges: in percent; None: above 90, 10 to 90, below 10.

        Raises:
            SMDebugTypeError: `device` is not a Resource.
            SMDebugValueError: a range is not a pair, or there is no range.
        """
        ranges = list(_RANGES if utilization_ranges is None else utilization_ranges)
        if not ranges or any(len(each) != 2 for each in ranges):
            raise SMDebugValueError(f"utilization_ranges is {utilization_ranges!r}, expected pairs of start and end.")
        wanted = [each.value for each in _list_resources(device, (Resource.CPU, Resource.GPU))]
        rows = self.sys_metrics_df[self.sys_metrics_df["type"].isin(wanted)]

        def find_range(value: float) -> tuple[float, float] | None:
            return next(((low, high) for low, high in ranges if low <= value <= high), None)

        found = pd.Series([find_range(value) for value in rows["value"]], index=rows.index, dtype=object)
        columns = sorted(set(ranges))
        counts = pd.DataFrame(
            {each: found.map(lambda seen, each=each: int(seen == each)) for each in columns}, index=rows.index
        )
        counts.columns = pd.Index(columns, tupleize_cols=False)
        table = counts.groupby([rows["type"], rows["nodeID"]]).sum()
        return table.loc[:, table.sum() > 0].reset_index()

    def get_training_phase_intervals(self, phase: str | Sequence[str] | None = None) -> pd.DataFrame | None:
        """Return the intervals of training phases: before the first, each phase, between phases, after the last.

        Args:
            phase: phases, such as Step:ModeKeys.TRAIN; None: all steps. With several phases, successive events of one
                phase form one interval. With a single phase, each of its events is an interval.

        Returns:
            Columns start_time_us, end_time_us and phase; None if no event belongs to these phases.
        """
        events = self.framework_metrics_df.sort_values("start_time_us")
        known = [each for each in events["process"].unique() if _STEP in str(each)]
        wanted = known if phase is None else [phase] if isinstance(phase, str) else list(phase)
        events = events[events["framework_metric"].isin(wanted)]
        if events.empty:
            return None
        spans: list[tuple[int, int, str]] = []
        for begin, end, name in zip(
            events["start_time_us"], events["end_time_us"], events["framework_metric"], strict=True
        ):
            if len(wanted) > 1 and spans and spans[-1][2] == name:
                spans[-1] = spans[-1][0], max(spans[-1][1], end), name
            else:
                spans.append((begin, end, name))
        times = self.sys_metrics_df["timestamp_us"]
        rows: list[tuple[int, int, str]] = [(times.min(), spans[0][0] - 1, f"Before {spans[0][2]}")]
        for (begin, end, name), following in zip(spans, [*spans[1:], None], strict=True):
            rows.append((begin, end, name))
            if following is None:
                rows.append((end + 1, times.max(), f"After {name}"))
            else:
                rows.append((end + 1, following[0] - 1, f"Between {' and '.join(sorted([name, following[2]]))}"))
        return pd.DataFrame(rows, columns=["start_time_us", "end_time_us", "phase"])

    def _add_phases(self, phase: str | Sequence[str] | None) -> pd.DataFrame:
        """Return the system metrics that lie in a phase's interval, with the phase's name."""
        intervals = self.get_training_phase_intervals(phase)
        frame = self.sys_metrics_df.copy()
        frame["phase"] = None
        if intervals is None:
            return frame.iloc[:0]
        intervals = intervals[intervals["start_time_us"] <= intervals["end_time_us"]]
        if intervals.empty:
            return frame.iloc[:0]
        begins, ends = intervals["start_time_us"].to_numpy(), intervals["end_time_us"].to_numpy()
        if (begins[1:] > ends[:-1]).all():
            # One look for each value, where one for each interval would take hours for a job of many steps.
            times = frame["timestamp_us"].to_numpy()
            at = np.searchsorted(begins, times, side="right") - 1
            inside = (at >= 0) & (times <= ends[at])
            frame.loc[inside, "phase"] = intervals["phase"].to_numpy()[at[inside]]
        else:  # the steps of several processes overlap
            for begin, end, name in intervals.itertuples(index=False):
                frame.loc[frame["timestamp_us"].between(begin, end), "phase"] = name
        return frame[frame["phase"].notna()]


def _list_resources(given: Any, default: Sequence[Resource]) -> list[Resource]:
    chosen = list(default) if given is None else [given] if isinstance(given, Resource) else list(given)
    if not all(isinstance(each, Resource) for each in chosen):
        raise SMDebugTypeError(f"{given!r} is neither a member of Resource nor a list of some.")
    return chosen


def _describe(groups: Any, name: str) -> pd.DataFrame:
    """Return statistics of each group, in columns named by a pattern."""
    table = groups.agg(["mean", "min", "max"])
    for share in (50, 95, 99):
        table[f"p{share}"] = groups.quantile(share / 100)
    table.columns = pd.Index([name.format(each) for each in table.columns])
    return table
