"""Tests of profiler notebooks in a kernel: ProfilerReport's, and live charts."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from smdebug.profiler.summary.job_profile import JobProfile
from smdebug.rules.drawing.notebook import build_notebook
from smdebug.rules.profiling.builtin.profiler_report import ProfilerReport
from smdebug.rules.profiling.evaluation import follow_job, write_report
from smdebug.rules.profiling.profiler_rule import ProfiledJob
from tests.unit.smdebug.profiler.profiled_job import write_profiled_job

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

CHARTS = """\
from smdebug.profiler.algorithm_metrics_reader import LocalAlgorithmMetricsReader
from smdebug.profiler.analysis.notebook_utils.heatmap import Heatmap
from smdebug.profiler.analysis.notebook_utils.metrics_histogram import MetricsHistogram
from smdebug.profiler.analysis.notebook_utils.step_histogram import StepHistogram
from smdebug.profiler.analysis.notebook_utils.step_timeline_chart import StepTimelineChart
from smdebug.profiler.analysis.notebook_utils.timeline_charts import TimelineCharts
from smdebug.profiler.system_metrics_reader import LocalSystemMetricsReader

system, framework = LocalSystemMetricsReader({path!r}), LocalAlgorithmMetricsReader({path!r})
histogram, steps = MetricsHistogram(system), StepHistogram(framework)
histogram.plot()
steps.plot()
timeline, chart = StepTimelineChart(framework), TimelineCharts(system, framework)
Heatmap(system)
chart.plot_detailed_profiler_data([0, 5])
for each in (histogram, steps, timeline, chart):
    assert each.target is not None
    each.update_data(1 << 62)
print("shown")"""


def execute(content: str, folder: Path) -> list[dict[str, Any]]:
    """Return all outputs of a notebook's cells; an error in one of them fails."""
    notebook = nbformat.reads(content, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def read_text(outputs: list[dict[str, Any]]) -> str:
    return "\n".join(output.get("text", "") + str(output.get("data", {}).get("text/plain", "")) for output in outputs)


def test_the_report_s_notebook_and_all_charts_run(tmp_path: Path) -> None:
    maker = write_profiled_job(tmp_path / "job" / "profiler-output")
    for second in range(12, 60):
        maker.add_sample(second, cpu=[95.0, 3.0], gpu=[5.0], memory=40.0)
    maker.end()
    report = ProfilerReport(CPUBottleneck_patience="1", BatchSize_patience="1")
    for job in follow_job(JobProfile(str(maker.folder)), report, ProfiledJob("job", str(maker.folder))):
        write_report(report, tmp_path, job)
    folder = tmp_path / "profiler-output"
    charts = json.loads(build_notebook([("code", CHARTS.replace("{path!r}", repr(str(maker.folder))))]))
    notebook = json.loads((folder / "profiler-report.ipynb").read_text())
    # One kernel for both: to start one takes seconds.
    notebook["cells"] += [{**cell, "id": "charts"} for cell in charts["cells"]]
    outputs = execute(json.dumps(notebook), folder)
    text = read_text(outputs)
    assert f"{24 * 2 * 6 + 48 * 4} system metrics, 21 trace events" in text
    assert "training_loop_start" in text
    assert "CPUBottleneck fired 1 times" in text
    assert "shown" in text
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 5
    assert sum("application/vnd.bokehjs_exec.v0+json" in output.get("data", {}) for output in outputs) >= 6
