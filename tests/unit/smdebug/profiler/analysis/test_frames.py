"""Tests of PandasFrame and of statistics of its frames."""

from pathlib import Path

import pandas as pd
import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.profiler.analysis.utils.pandas_data_analysis import PandasFrameAnalysis, Resource, StatsBy
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame
from smdebug.profiler.analysis.utils.pytorch_dataloader_analysis import PT_dataloader_analysis
from smdebug.profiler.utils import us_since_epoch_to_human_readable_time
from tests.unit.smdebug.profiler.profile_maker import ProfileMaker
from tests.unit.smdebug.profiler.profiled_job import START_US, STEP, write_profiled_job

SECOND = 1_000_000


@pytest.fixture
def frame(tmp_path: Path) -> PandasFrame:
    write_profiled_job(tmp_path)
    return PandasFrame(tmp_path)


@pytest.fixture
def analysis(frame: PandasFrame) -> PandasFrameAnalysis:
    return PandasFrameAnalysis(frame.get_all_system_metrics(), frame.get_all_framework_metrics())


def test_frames_of_the_whole_job(frame: PandasFrame) -> None:
    system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
    assert list(system.columns) == [
        "timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type",
    ]  # fmt: skip
    assert len(system) == 24 * 2 * 6
    assert system["timestamp_us"].min() == 0
    assert len(frame.get_all_system_metrics(["cpu0"])) == 24 * 2 * 2
    assert len(framework) == 21
    assert framework["start_time_us"].min() == 2 * SECOND
    assert set(framework["nodeID"]) == {"algo-1-0", "algo-2-1"}
    assert set(frame.get_all_framework_metrics(["Forward"])["process"]) == {"Forward"}
    assert framework.loc[framework["process"] == "DataLoaderIter", "step"].unique().tolist() == [-1]


def test_frames_of_a_part(frame: PandasFrame) -> None:
    system, framework = frame.get_profiler_data_by_time(START_US + 2 * SECOND, START_US + 3 * SECOND - 1)
    assert system["timestamp_us"].between(2 * SECOND, 3 * SECOND).all()
    assert sorted(framework["process"]) == ["Backward(post-forward)", "DataLoaderIter", "Forward", STEP]
    system, framework = frame.get_profiler_data_by_step(1, 2)
    assert set(framework["step"]) == {1, 2}
    assert (system["timestamp_us"].min(), system["timestamp_us"].max()) == (3 * SECOND, 4 * SECOND + 505_000)
    both = [frame.get_profiler_data_by_time(START_US, START_US + SECOND, cache_metrics=True)[0] for _ in range(2)]
    more, _ = frame.get_profiler_data_by_time(START_US + SECOND, START_US + 2 * SECOND, cache_metrics=True)
    assert len(both[0]) == len(both[1]) < len(more)


def test_trace_events_at_times(frame: PandasFrame) -> None:
    at = [us_since_epoch_to_human_readable_time(START_US + second * SECOND) for second in (2.1, 3.1, 2.85)]
    phases, names, steps = frame.get_framework_metrics_by_timesteps(at)
    assert phases == {"Forward": 1.0, "DataLoaderIter": 0.2}
    assert names == {"Forward": 2 * 250_000, "DataLoaderIter": 100_000}
    assert steps == {STEP: 2 * 800_000 + 600_000}
    assert frame.get_framework_metrics_by_timesteps([]) == ({}, {}, {})
    begins, ends = ([us_since_epoch_to_human_readable_time(START_US + each)] for each in (2 * SECOND, 3 * SECOND - 1))
    by_phase, by_name = frame.get_framework_metrics_by_begin_and_end_timesteps(begins, ends)
    assert by_phase == by_name == {"Forward": 0.5, "Backward(post-forward)": 1.0, "DataLoaderIter": 0.2}


def test_statistics_of_the_job(analysis: PandasFrameAnalysis) -> None:
    stats = analysis.get_job_statistics()
    assert stats["job_duration"] == pytest.approx(11_506_000, abs=2000)
    assert stats["initialization"] == 2 * SECOND
    assert stats["training_loop_duration"] == 4_900_000
    assert stats["initialization_%"] + stats["training_loop_%"] + stats["finalization_%"] == pytest.approx(100)
    assert "training_loop_start" in repr(stats)


def test_statistics_of_steps(analysis: PandasFrameAnalysis) -> None:
    (steps,) = analysis.get_step_statistics().to_dict("records")
    assert steps["training_phase"] == STEP
    assert (steps["duration_mean_us"], steps["duration_min_us"], steps["duration_p50_us"]) == (8e5, 8e5, 8e5)
    processes = analysis.get_step_statistics(by=StatsBy.PROCESS).set_index("process")
    assert processes.loc["Forward", "duration_mean_us"] == 250_000
    assert set(analysis.get_step_statistics(StatsBy.FRAMEWORK_METRICS)["framework_metric"]) == set(processes.index)
    with pytest.raises(SMDebugTypeError, match="expected a member of StatsBy"):
        analysis.get_step_statistics("process")  # type: ignore[arg-type]


def test_utilization(analysis: PandasFrameAnalysis) -> None:
    table = analysis.get_utilization_stats().set_index(["Resource", "nodeID"])
    assert list(dict.fromkeys(table.index.get_level_values(0))) == ["cpu", "gpu", "memory"]
    assert table.loc[("gpu", "algo-2"), "utilization_mean"] == 45
    assert table.loc[("memory", "algo-1"), "utilization_max"] == 63
    phases = analysis.get_utilization_stats(Resource.GPU, StatsBy.TRAINING_PHASE)
    assert set(phases["Training_phase"]) == {f"Before {STEP}", STEP, f"After {STEP}"}
    usage = analysis.get_device_usage_stats().set_index(["type", "nodeID"])
    counts = dict(zip(usage.columns, usage.loc[("gpu", "algo-1")], strict=True))
    assert counts == {(90, 100): 12, (10, 90): 0, (0, 10): 12}
    for wrong in ([], [(1,)]):
        with pytest.raises(SMDebugValueError, match="expected pairs"):
            analysis.get_device_usage_stats(utilization_ranges=wrong)  # type: ignore[arg-type]
    with pytest.raises(SMDebugTypeError, match="neither a member of Resource"):
        analysis.get_utilization_stats("cpu")  # type: ignore[arg-type]


def test_intervals_of_phases() -> None:
    columns = ["start_time_us", "end_time_us", "framework_metric", "process", "step"]
    steps = [(10, 20, "TRAIN"), (20, 30, "TRAIN"), (40, 50, "EVAL"), (60, 70, "TRAIN")]
    rows = [(a, b, f"Step:ModeKeys.{mode}", f"Step:ModeKeys.{mode}", at) for at, (a, b, mode) in enumerate(steps)]
    system = pd.DataFrame({"timestamp_us": [0, 100]})
    found = PandasFrameAnalysis(system, pd.DataFrame(rows, columns=columns)).get_training_phase_intervals()
    assert found is not None
    assert found.values.tolist() == [
        [0, 9, "Before Step:ModeKeys.TRAIN"],
        [10, 30, "Step:ModeKeys.TRAIN"],
        [31, 39, "Between Step:ModeKeys.EVAL and Step:ModeKeys.TRAIN"],
        [40, 50, "Step:ModeKeys.EVAL"],
        [51, 59, "Between Step:ModeKeys.EVAL and Step:ModeKeys.TRAIN"],
        [60, 70, "Step:ModeKeys.TRAIN"],
        [71, 100, "After Step:ModeKeys.TRAIN"],
    ]


def test_an_event_without_a_step_gets_that_in_which_it_lies(analysis: PandasFrameAnalysis) -> None:
    frame = analysis.framework_metrics_df
    assert "step" in frame
    extra = frame.iloc[:1].assign(step=-1, start_time_us=3_100_000, end_time_us=3_200_000)
    filled = PandasFrameAnalysis(analysis.sys_metrics_df, pd.concat([frame, extra], ignore_index=True))
    assert filled.framework_metrics_df["step"].iloc[-1] == 1


def test_a_job_without_anything(tmp_path: Path) -> None:
    frame = PandasFrame(tmp_path / "nothing")
    system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
    assert len(system) == len(framework) == 0
    analysis = PandasFrameAnalysis(system, framework)
    assert analysis.get_step_statistics().empty
    assert analysis.get_utilization_stats().empty
    assert analysis.get_device_usage_stats().empty
    assert analysis.get_training_phase_intervals() is None
    with pytest.raises(SMDebugValueError, match="frame of system metrics is empty"):
        analysis.get_job_statistics()


def test_a_job_of_one_sample(tmp_path: Path) -> None:
    ProfileMaker(tmp_path).add_sample(0.0, memory=3.0)
    frame = PandasFrame(tmp_path)
    analysis = PandasFrameAnalysis(frame.get_all_system_metrics(), frame.get_all_framework_metrics())
    assert analysis.get_job_statistics()["job_duration"] == 0
    assert len(analysis.get_utilization_stats(by=StatsBy.TRAINING_PHASE)) == 0


def test_without_system_metrics_times_count_from_the_first_event(tmp_path: Path) -> None:
    ProfileMaker(tmp_path).add_events([(STEP, 5.0, 1.0, {"step_num": "0"})])
    assert PandasFrame(tmp_path).get_all_framework_metrics()["start_time_us"].tolist() == [0]


def test_data_loaders(frame: PandasFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysis = PT_dataloader_analysis(frame)
    assert analysis.dataIter_metric.empty, "the name of the event is not GetNext"
    assert analysis.analyze_dataloader_getnext() is None
    assert "no trace events of DataLoaderIter::GetNext" in capsys.readouterr().out
    events = [
        ("DataLoaderIter", 20.0 + at, 0.1 if at != 3 else 0.4, {"num_workers": 2, "pin_memory": True})
        for at in range(6)
    ]
    path = ProfileMaker(tmp_path).add_events([*events, ("DataLoaderIterInitialize", 19.0, 0.5, {"num_workers": 2})])
    path.write_text(path.read_text().replace('"name": "DataLoaderIter",', '"name": "DataLoaderIter::GetNext",'))
    analysis = PT_dataloader_analysis(PandasFrame(tmp_path))
    assert analysis.dataIter_metric["pin_memory"].unique().tolist() == ["True"]
    slow = analysis.analyze_dataloader_getnext()
    assert slow is not None
    assert slow["duration_us"].tolist() == [400_000]
    assert analysis.analyze_dataloaderIter_initialization() is None, "one is the median"
    assert analysis.analyze_dataloaderWorkers() is None
    assert analysis.analyze_batchtime() is None, "each batch came a second after the one before"
    said = capsys.readouterr().out
    assert "6 batches were asked for." in said
    assert "1 iterators were made with 2 workers, pin_memory NA." in said
