"""Tests of charts outside a notebook: content, selection and updates."""

import doctest
import sys
from pathlib import Path

import pytest

from smdebug.exceptions import SMDebugError
from smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils import selected_metrics
from smdebug.profiler.analysis.notebook_utils.heatmap import Heatmap
from smdebug.profiler.analysis.notebook_utils.metrics_histogram import MetricsHistogram
from smdebug.profiler.analysis.notebook_utils.step_histogram import StepHistogram
from smdebug.profiler.analysis.notebook_utils.step_timeline_chart import StepTimelineChart
from smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts
from smdebug.profiler.profiler_constants import LAST
from smdebug.profiler.system_metrics_reader import SystemMetricsReader
from tests.unit.smdebug.profiler.profile_maker import ProfileMaker
from tests.unit.smdebug.profiler.profiled_job import START_US, STEP, write_profiled_job


@pytest.fixture
def maker(tmp_path: Path) -> ProfileMaker:
    return write_profiled_job(tmp_path)


@pytest.fixture
def system(maker: ProfileMaker) -> SystemMetricsReader:
    return SystemMetricsReader(maker.folder)


@pytest.fixture
def framework(maker: ProfileMaker) -> LocalAlgorithmMetricsReader:
    return LocalAlgorithmMetricsReader(maker.folder)


@pytest.mark.slow
def test_histograms_of_system_metrics(maker: ProfileMaker, system: SystemMetricsReader) -> None:
    chart = MetricsHistogram(system)
    chart.plot(select_dimensions=["CPU"], select_events=["total", "cpu1"])
    assert {key: set(names) for key, names in chart.sources.items()} == {
        "CPUUtilization-nodeid:algo-1": {"total", "cpu1"},
        "CPUUtilization-nodeid:algo-2": {"total", "cpu1"},
    }
    total = chart.sources["CPUUtilization-nodeid:algo-1"]["total"]
    # The mean of 10 % and 30 % at each of 24 times.
    assert [(left, count) for left, count in zip(total.data["left"], total.data["top"], strict=True) if count] == [
        (20.0, 24)
    ]
    maker.add_sample(12.0, cpu=[50.0, 70.0])
    chart.update_data(START_US + 13_000_000)
    assert sum(total.data["top"]) == 25
    chart.plot(select_dimensions=["Memory"], show_workers=False)
    assert list(chart.sources) == ["MemoryUsedPercent"]
    chart.clear()
    assert chart.sources == {}


def test_histograms_of_steps(maker: ProfileMaker, framework: LocalAlgorithmMetricsReader) -> None:
    chart = StepHistogram(framework)
    chart.plot()
    assert set(chart.sources) == {
        f"{STEP}-nodeid:algo-1-0",
        f"{STEP}-nodeid:algo-2-1",
        "Forward-nodeid:algo-1-0",
        "Backward(post-forward)-nodeid:algo-1-0",
    }
    assert chart.step_metrics[f"{STEP}-nodeid:algo-1-0"] == [0.8] * 5
    maker.add_events([(STEP, 11.0, 0.5, {"step_num": "9"})])
    chart.update_data(LAST)
    assert chart.step_metrics[f"{STEP}-nodeid:algo-1-0"] == [0.8] * 5 + [0.5]
    assert sum(chart.sources[f"{STEP}-nodeid:algo-2-1"].data["top"]) == 1


def test_steps_over_time(maker: ProfileMaker, framework: LocalAlgorithmMetricsReader) -> None:
    chart = StepTimelineChart(framework, width=3)
    assert chart.source.data["x"] == pytest.approx([0, 1, 1, 2, 3, 4])
    assert chart.source.data["y"] == pytest.approx([0.8, 0.6, 0.8, 0.8, 0.8, 0.8])
    assert chart.plot.x_range.start == pytest.approx(2)
    maker.add_events([(STEP, 11.0, 0.5, {"step_num": "9"})])
    chart.update_data(LAST)
    assert chart.source.data["step"][-1] == "9"
    assert chart.plot.x_range.end == pytest.approx(9)


def test_system_metrics_over_time(
    maker: ProfileMaker, system: SystemMetricsReader, framework: LocalAlgorithmMetricsReader
) -> None:
    chart = TimelineCharts(system, framework, select_dimensions=["CPUUtil", "GPU"], select_events=["total"], x=10)
    assert len(chart.figures) == 4
    source = chart.sources["GPUUtilization-nodeid:algo-1"]["total"]
    assert list(source.data["y"]) == [0.0, 90.0] * 12
    # Data points 4 to 5: the first half second of step 0.
    spent = {f"{STEP}_0": 0.8, "Forward_0": 0.25, "Backward(post-forward)_0": 0.5}
    assert chart.find_time_annotations([4, 5]) == pytest.approx(spent)
    assert chart.find_time_annotations([]) == {}
    events = framework.get_events(0, LAST)
    assert set(chart.plot_dataloaders(events)) == {"DataLoaderIter"}
    assert set(chart.plot_framework_events(events)) == {STEP, "Forward", "Backward(post-forward)"}
    assert len(chart.plot_detailed_profiler_data([0, 23]).children) == 2
    maker.add_sample(12.0, cpu=[50.0, 70.0], gpu=[45.0])
    chart.update_data(START_US + 13_000_000)
    assert source.data["y"][-1] == 45.0


def test_rows_of_colours(system: SystemMetricsReader) -> None:
    chart = Heatmap(system, select_dimensions=[".*CPU", ".*GPUUtil"], select_events=["total", "gpu"])
    assert list(chart.rows) == [
        "CPUUtilization_total_algo-1",
        "GPUUtilization_gpu0_algo-1",
        "GPUUtilization_total_algo-1",
        "CPUUtilization_total_algo-2",
        "GPUUtilization_gpu0_algo-2",
        "GPUUtilization_total_algo-2",
        "CPUUtilization_total_node_total",
        "GPUUtilization_total_node_total",
    ]
    assert chart.width == 24
    assert chart.rows["CPUUtilization_total_node_total"].tolist() == [20.0] * 24
    assert chart.plot.height == 350


def test_of_a_job_that_has_left_nothing(tmp_path: Path) -> None:
    system, framework = SystemMetricsReader(tmp_path / "no"), LocalAlgorithmMetricsReader(tmp_path / "no")
    MetricsHistogram(system).plot()
    StepHistogram(framework).plot()
    assert StepTimelineChart(framework).steps == []
    assert Heatmap(system).rows == {}
    chart = TimelineCharts(system, framework)
    assert chart.figures == []
    assert chart.find_time_annotations([1]) == {}


def test_without_bokeh_a_message_says_so(
    maker: ProfileMaker, system: SystemMetricsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh.io", None)
    with pytest.raises(SMDebugError, match="Charts need bokeh 3: pip install"):
        Heatmap(system)


def test_doctests() -> None:
    assert doctest.testmod(selected_metrics) == (0, 1)
