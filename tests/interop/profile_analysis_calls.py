"""Script that prints what each analysis of a profile tells of one folder.

Interpreters with the real smdebug 1.0.34 and with ours run it.

python profile_analysis_calls.py FOLDER
"""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

folder = sys.argv[1]
# By name: a checker of types would look for them in our own smdebug.
analysis: Any = import_module("smdebug.profiler.analysis.utils.pandas_data_analysis")
frames: Any = import_module("smdebug.profiler.analysis.utils.profiler_data_to_pandas")
loading: Any = import_module("smdebug.profiler.analysis.utils.pytorch_dataloader_analysis")
python: Any = import_module("smdebug.profiler.analysis.python_profile_analysis")
modes: Any = import_module("smdebug.profiler.python_profile_utils")
MINUTE = 1_700_000_040
CPU, GPU = analysis.Resource.CPU, analysis.Resource.GPU
TRAIN, EVAL = "Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"
BY = analysis.StatsBy


def tell(table: Any) -> Any:
    """Columns and rows of a table, in its order; None if there is none."""
    if table is None:
        return None
    values = [[repr(each) if isinstance(each, tuple) else each for each in row] for row in table.values.tolist()]
    return [[str(column) for column in table.columns], values]


def tell_sorted(table: Any) -> Any:
    columns, rows = tell(table)
    return columns, sorted(rows, key=repr)


def analyze_frames() -> Iterator[tuple[str, Any]]:
    frame = frames.PandasFrame(folder)

    def make() -> Any:
        return analysis.PandasFrameAnalysis(frame.get_all_system_metrics(), frame.get_all_framework_metrics())

    yield "steps", sorted(make().framework_metrics_df["step"].tolist())
    yield "span of steps", tell(make().step_time_df)
    for by in (BY.TRAINING_PHASE, BY.FRAMEWORK_METRICS, BY.PROCESS):
        yield f"steps by {by.name}", tell(make().get_step_statistics(by))
    for resource in (None, CPU, [GPU, CPU], analysis.Resource.MEMORY):
        yield f"use of {resource}", tell(make().get_utilization_stats(resource))
    for phase in (None, TRAIN, [EVAL]):
        yield f"intervals of {phase}", tell(make().get_training_phase_intervals(phase))
        yield f"use by {phase}", tell_sorted(make().get_utilization_stats(by=BY.TRAINING_PHASE, phase=phase))
    for device, ranges in product((None, CPU, [CPU, GPU]), (None, [(0, 30), (30, 100)])):
        yield f"devices {device} {ranges}", tell(make().get_device_usage_stats(device, ranges))
    moments = [f"2023-11-14T22:14:{second:02d}:{micros:06d}" for second in (1, 2, 5) for micros in (100_000, 600_000)]
    # Upstream leaves the last moment out; at this one there is nothing.
    timed = [*moments, "2023-11-14T22:14:06:950000"]
    yield "at moments", frame.get_framework_metrics_by_timesteps(timed)
    yield "at moments, chosen", frame.get_framework_metrics_by_timesteps(timed, ["DataLoaderIter"])
    spans = moments[::2], moments[1::2]
    yield "in spans", frame.get_framework_metrics_by_begin_and_end_timesteps(*spans)
    yield "in spans, chosen", frame.get_framework_metrics_by_begin_and_end_timesteps(*spans, ["DataLoaderIter"])
    for chosen in ([], [".*DataLoaderIter::GetNext"], ["DataLoaderWorker"]):
        yield f"loaders {chosen}", tell_sorted(frame.get_all_dataloader_metrics(chosen))


def analyze_loading() -> Iterator[tuple[str, Any]]:
    found = loading.PT_dataloader_analysis(frames.PandasFrame(folder))
    yield "workers", tell(found.analyze_dataloaderWorkers())
    yield "batches", tell(found.analyze_dataloader_getnext())
    times = found.analyze_batchtime()
    yield "times of batches", tell(times[["BatchTime_in_seconds", "worker_id"]])


def tell_calls(stats: Any) -> Any:
    if stats is None:
        return None
    return sorted([each.function_name, each.prim_calls, each.total_calls] for each in stats.function_stats_list)


def analyze_python() -> Iterator[tuple[str, Any]]:
    place = f"{folder}/framework/pytorch/cprofile"
    found = python.cProfileAnalysis(place)
    ends = [f"{end}_{part}" for end in ("start", "end") for part in ("mode", "step", "phase")]
    columns = ["profiler_name", "framework", "node_id", *ends]
    yield "listed", tell_sorted(found.list_profile_stats()[columns].astype(str))
    yield "nodes", found.list_available_node_ids()
    phases = [modes.StepPhase.STEP_START, modes.StepPhase.FORWARD_PASS_END, modes.StepPhase.STEP_END]
    for first, last in ((4, 5), (5, None), (5, 6), (6, 7)):
        for node in ("any", "1-algo-2"):
            stats = found.fetch_profile_stats_by_step(first, last, mode=modes.PythonProfileModes.GLOBAL, node_id=node)
            yield f"steps {first} {last} {node}", tell_calls(stats)
        for begin, end in product(phases, phases):
            stats = found.fetch_profile_stats_by_step(first, last, modes.PythonProfileModes.GLOBAL, begin, end)
            yield f"steps {first} {last} {begin} {end}", tell_calls(stats)
    yield "steps of training", tell_calls(found.fetch_profile_stats_by_step(5, 6))
    for start, end in ((MINUTE, MINUTE + 3), (MINUTE + 2.5, MINUTE + 5), (MINUTE + 90, MINUTE + 99)):
        yield f"times {start} {end}", tell_calls(found.fetch_profile_stats_by_time(start, end))
    yield "before step 0", tell_calls(found.fetch_pre_step_zero_profile_stats())
    yield "after the hook", tell_calls(found.fetch_post_hook_close_profile_stats())
    for start, end in product(modes.PythonProfileModes, repeat=2):
        yield f"modes {start} {end}", tell_calls(found.fetch_profile_stats_between_modes(start, end))
    by_phase = found.fetch_profile_stats_by_training_phase().items()
    yield "by phase of training", sorted([str(key), tell_calls(stats)] for key, stats in by_phase)
    by_phase = found.fetch_profile_stats_by_job_phase().items()
    yield "by phase of the job", sorted([str(key), tell_calls(stats)] for key, stats in by_phase)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        utils: Any = import_module("smdebug.profiler.analysis.utils.python_profile_analysis_utils")
        found.fetch_pre_step_zero_profile_stats().print_top_n_functions(utils.Metrics.TOTAL_CALLS, 2)
    yield "printed", [line for line in printed.getvalue().splitlines() if "compute_something" in line]
    drawn = python.PyinstrumentAnalysis(f"{folder}/framework/pytorch/pyinstrument")
    for step in (5, 6):
        stats = drawn.fetch_profile_stats_by_step(step, step + 1, mode=modes.PythonProfileModes.GLOBAL)
        yield f"pyinstrument {step}", stats and [[each.html_file_path, each.json_stats] for each in stats]


calls = {"frames": analyze_frames, "loading": analyze_loading, "python": analyze_python}
answers = {f"{name} {call}": found for name, make in calls.items() for call, found in make()}
sys.stdout.write(f"\nFOUND {json.dumps(answers, default=str)}\n")
