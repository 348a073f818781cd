"""ProfilerReport as a notebook: its figures, each with its code."""

from smdebug.rules.drawing.notebook import build_notebook
from smdebug.rules.profiling.profiler_rule import REPORTS, ProfiledJob

_OPEN = """\
import json
from pathlib import Path

import pandas as pd
from matplotlib import pyplot
from smdebug.profiler.analysis.utils.pandas_data_analysis import PandasFrameAnalysis, Resource, StatsBy
from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame

path = {path!r}
frame = PandasFrame(path)
system, framework = frame.get_all_system_metrics(), frame.get_all_framework_metrics()
analysis = PandasFrameAnalysis(system, framework)
has_steps = framework["framework_metric"].str.startswith("Step:ModeKeys").any()
print(f"{len(system)} system metrics, {len(framework)} trace events")"""

_SUMMARY = """\
if len(system) and has_steps:
    for name, value in analysis.get_job_statistics().items():
        print(f"{name:>24} {value}")
elif len(system):
    print(f"from {system['timestamp'].min()} to {system['timestamp'].max()}; no steps were traced")"""

_USAGE = """\
analysis.get_utilization_stats() if len(system) else None"""

_LINES = """\
for (kind, dimension), rows in system.groupby(["type", "dimension"]) if len(system) else []:
    figure, axes = pyplot.subplots(figsize=(8, 2.5))
    for name, device in rows.groupby(["nodeID", "system_metric"]):
        axes.plot(device["timestamp_us"] / 1e6, device["value"], label=" ".join(name), linewidth=0.8)
    axes.set(title=f"{kind} {dimension}".strip(), xlabel="seconds")
    axes.legend(fontsize="x-small")
    pyplot.show()"""

_FRAMEWORK = """\
phases = (framework["end_time_us"] - framework["start_time_us"]).groupby(framework["process"]).sum() / 1e6
phases.sort_values(ascending=False).rename("seconds").to_frame()"""

_STEPS = """\
if has_steps:
    display(analysis.get_step_statistics(by=StatsBy.TRAINING_PHASE))
    steps = framework[framework["framework_metric"].str.startswith("Step:ModeKeys")]
    for (node, mode), rows in steps.groupby(["nodeID", "framework_metric"]):
        figure, axes = pyplot.subplots(figsize=(8, 2.5))
        axes.hist((rows["end_time_us"] - rows["start_time_us"]) / 1e6, bins=30)
        axes.set(title=f"{node} {mode}", xlabel="seconds of a step")
        pyplot.show()"""

_RULES = """\
reports = {each.stem: json.loads(each.read_text()) for each in sorted(Path("{reports}").glob("*.json"))}
columns = ["RuleTriggered", "Datapoints", "Violations", "RuleParameters"]
table = pd.DataFrame({name: {column: report[column] for column in columns} for name, report in reports.items()}).T
table.sort_values("RuleTriggered", ascending=False) if len(table) else table"""

_FINDINGS = """\
for name, report in reports.items():
    if report["RuleTriggered"]:
        print(f"{name} fired {report['RuleTriggered']} times")
        for finding in report["Details"].get("Findings", [])[:5]:
            print(f"    {finding['text']}")"""

_CELLS = (
    ("The profile", "The job's files, read where they lie; an S3 path needs AWS_ENDPOINT_URL and credentials.", _OPEN),
    ("Training job summary", "", _SUMMARY),
    ("System usage statistics", "", _USAGE),
    ("System usage over time", "", _LINES),
    ("Framework metrics summary", "Seconds of all processes together.", _FRAMEWORK),
    ("Step durations", "", _STEPS),
    ("Rules summary", f"Of the files in {REPORTS}, which lie beside this notebook.", _RULES),
    ("What the rules found", "What to do about it is in profiler-report.html.", _FINDINGS),
)


def render_notebook(job: ProfiledJob) -> str:
    """Return the notebook (nbformat 4.5, as JSON) that reads the job's profile by itself."""
    cells = [("markdown", f"# Profiler report of {job.name}")]
    for heading, text, code in _CELLS:
        cells.append(("markdown", f"## {heading}\n\n{text}".rstrip()))
        cells.append(("code", code.replace("{path!r}", repr(job.profile_path)).replace("{reports}", REPORTS)))
    return build_notebook(cells)
