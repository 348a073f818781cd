"""Reading of a profile by the real smdebug 1.0.34.

Its interpreter runs this (`serve_calls.py`).
"""

from importlib import import_module
from pathlib import Path
from typing import Any

# By name: a checker of types would look for them in our own smdebug.
PandasFrame: Any = import_module("smdebug.profiler.analysis.utils.profiler_data_to_pandas").PandasFrame
LocalSystemMetricsReader: Any = import_module("smdebug.profiler.system_metrics_reader").LocalSystemMetricsReader
LocalAlgorithmMetricsReader: Any = import_module(
    "smdebug.profiler.algorithm_metrics_reader"
).LocalAlgorithmMetricsReader
TimeUnits: Any = import_module("smdebug.profiler.utils").TimeUnits


def read(folder: str) -> dict[str, Any]:
    end = 4_000_000_000_000_000
    system = LocalSystemMetricsReader(folder)
    system.refresh_event_file_list()
    found: dict[str, Any] = {
        "system": [
            [event.type, event.name, event.dimension, event.value, event.node_id, event.timestamp]
            for event in system.get_events(0, end, unit=TimeUnits.MICROSECONDS)
        ]
    }
    frame = PandasFrame(folder)
    metrics = frame.get_all_system_metrics()
    found["frame"] = {
        "rows": len(metrics),
        "columns": list(metrics.columns),
        "held": list(metrics.loc[metrics["system_metric"] == "MemoryUsedPercent", "value"]),
    }
    framework = LocalAlgorithmMetricsReader(folder)
    framework.refresh_event_file_list()
    found["framework"] = [
        [event.event_phase, event.event_name, event.start_time, event.end_time, event.pid, event.event_args]
        for event in framework.get_events(0, end, unit=TimeUnits.MICROSECONDS)
    ]
    if found["framework"] and metrics["timestamp_us"].nunique() > 1:
        # A thread's number is made up anew by each reader where the file tells none.
        events = frame.get_all_framework_metrics().drop(columns="tid")
        found["frames"] = [each.to_dict("list") for each in (metrics, events)]
        analysis: Any = import_module("smdebug.profiler.analysis.utils.pandas_data_analysis")
        statistics = analysis.PandasFrameAnalysis(metrics.copy(), frame.get_all_framework_metrics().copy())
        found["statistics"] = [
            statistics.get_step_statistics(by).to_dict("list")
            for by in (analysis.StatsBy.TRAINING_PHASE, analysis.StatsBy.PROCESS)
        ]
        found["statistics"].append(statistics.get_utilization_stats().to_dict("list"))
        # It takes events as they come, process after process: of one they are in the order of time.
        every = frame.get_all_framework_metrics()
        one = analysis.PandasFrameAnalysis(metrics.copy(), every[every["nodeID"] == every["nodeID"].iloc[0]].copy())
        intervals = one.get_training_phase_intervals()
        found["statistics"].append(intervals.to_dict("list"))
        job = statistics.get_job_statistics()
        found["job"] = {
            name: str(job[name]) for name in ("start_time", "end_time", "training_loop_start", "training_loop_end")
        }
        found["job"]["job_duration"] = int(job["job_duration"])
    profiles = Path(folder, "framework", "pytorch", "cprofile")
    if profiles.is_dir():
        python: Any = import_module("smdebug.profiler.analysis.python_profile_analysis")
        mode: Any = import_module("smdebug.profiler.python_profile_utils").PythonProfileModes.GLOBAL
        fetch = python.cProfileAnalysis(str(profiles)).fetch_profile_stats_by_step
        found["calls"] = [
            sum(each.total_calls for each in stats.function_stats_list) if stats else 0
            for stats in (fetch(first, last, mode=mode) for first in range(6) for last in range(first, 6))
        ]
    found["framework_rows"] = len(frame.get_all_framework_metrics()) if found["framework"] else 0
    return found
