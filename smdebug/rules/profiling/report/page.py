"""ProfilerReport page: AWS's sections in one self-contained HTML file.

It sends no request when it is opened.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape

import numpy as np

from smdebug.profiler.system_samples import CPU, GPU, GPU_MEMORY, MEMORY
from smdebug.rules.drawing.html_page import (
    render_boxes,
    render_details,
    render_histogram,
    render_lines,
    render_page,
    render_pie,
    render_table,
    render_text,
)
from smdebug.rules.profiling.bottleneck import BottleneckRule
from smdebug.rules.profiling.profiler_rule import ProfiledJob, ProfilerRule
from smdebug.rules.profiling.report.job_record import JobRecord, group_phases
from smdebug.rules.wording import count_noun

_MOST_OPERATORS = 20
_MOST_FINDINGS = 3
_MOST_PHASES = 5
_NO_EVENTS = (
    "No trace event has come: there are some of PyTorch and TensorFlow where the job's ProfilerConfig has "
    "ProfilingParameters. What needs them is left out."
)


def summarize_job(record: JobRecord) -> dict[str, str | float]:
    """Return AWS's members of a job's summary, times in UTC; those of the training loop where steps came."""
    if not math.isfinite(record.first):
        return {}
    duration = record.last - record.first
    summary: dict[str, str | float] = {
        "start_time": _format_time(record.first),
        "end_time": _format_time(record.last),
        "job_duration_in_seconds": duration,
    }
    if not math.isfinite(record.first_step):
        return summary
    parts = {
        "initialization": record.first_step - record.first,
        "training_loop": record.last_event - record.first_step,
        "finalization": record.last - record.last_event,
    }
    return {
        **summary,
        "training_loop_start": _format_time(record.first_step),
        "training_loop_end": _format_time(record.last_event),
        "training_loop_duration_in_seconds": parts["training_loop"],
        "initialization_in_seconds": parts["initialization"],
        "finalization_in_seconds": parts["finalization"],
        **{f"{name}_%": 100 * part / duration if duration > 0 else 0.0 for name, part in parts.items()},
    }


def describe_rule(rule: ProfilerRule) -> str:
    """Return what a rule watches for, in a sentence without markup."""
    return (inspect.getdoc(type(rule)) or "").partition("\n")[0].replace("`", "")


def render_report(job: ProfiledJob, record: JobRecord, rules: Sequence[ProfilerRule]) -> str:
    """Return the page of a job so far."""
    state = "The job has ended." if job.ended else "The job is still running: this page is written anew meanwhile."
    if job.damaged:
        state += f" {count_noun(job.damaged, 'damaged line')} of its profile could not be read and left out."
    fired = sorted((rule for rule in rules if rule.triggered), key=lambda rule: -rule.triggered)
    sections = [
        ("Training job summary", render_text(state) + _render_verdict(fired) + _render_summary(record)),
        ("System usage statistics", _render_usage(rules)),
        ("Framework metrics summary", _render_framework(record)),
        ("Rules summary", _render_rules(rules)),
        *((f"{rule.name}: {_HEADINGS.get(rule.name, 'findings')}", _render_fired(rule, record)) for rule in fired),
    ]
    return render_page(f"Profiler report of {job.name}", sections)


def _format_time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        # A clock that was never right.
        return f"{seconds:g} s since the epoch"


def _render_verdict(fired: Sequence[ProfilerRule]) -> str:
    """Return the first finding of each rule that fired, the most fired first."""
    if not fired:
        return render_text("No rule has found an issue.")
    found = "".join(f"<li>{escape(rule.name)}: {escape(rule.findings[0].text)}</li>" for rule in fired)
    return f"<ul>{found}</ul>"


def _render_summary(record: JobRecord) -> str:
    summary = summarize_job(record)
    if not summary:
        return render_text("Neither a system metric nor a trace event has come of this job.")
    parts = {
        name: value
        for name in ("initialization", "training_loop", "finalization")
        if isinstance(value := summary.get(f"{name}_%"), float)
    }
    chart = render_pie(parts, "Time of the job") if any(parts.values()) else render_text(_NO_EVENTS)
    table = render_table(("", "value"), list(summary.items()))
    return render_details("Times of the job", table + chart)


def _render_usage(rules: Sequence[ProfilerRule]) -> str:
    (usage,) = (rule.describe_details()["Usage"] for rule in rules if rule.name == "OverallSystemUsage")
    if not usage:
        return render_text("No system metric has come.")
    head = ("node", "metric", "unit", "max", "p99", "p95", "p50", "min")
    text = "Of several cores or GPUs it is their mean; a node without a GPU has no line of one."
    return render_text(text) + render_table(head, [[row[name] for name in head] for row in usage])


def _render_framework(record: JobRecord) -> str:
    if not record.seconds:
        return render_text(_NO_EVENTS)
    pies = dict(group_phases(record.seconds))
    others = record.last - record.first - sum(pies.get("Steps", {}).values())
    if "Steps" in pies and others > 0:
        pies["Steps"]["others"] = others
    phases = sorted(record.seconds.items(), key=lambda item: -item[1])
    text = render_text("Seconds of all processes together.")
    parts = [render_pie(values, _PIES[title]) for title, values in pies.items()]
    parts.append(render_table(("phase", "seconds"), phases))
    for device, operators in sorted(record.operators.items()):
        total = sum(operators.values()) or 1.0
        longest = sorted(operators.items(), key=lambda item: -item[1])[:_MOST_OPERATORS]
        rows = [(name, 100 * seconds / total, seconds) for name, seconds in longest]
        parts.append(f"<h3>{device} operators</h3>{render_table(('operator', '%', 'accumulated seconds'), rows)}")
    longest_phases = ", ".join(f"{phase} {seconds:.4g}" for phase, seconds in phases[:_MOST_PHASES])
    return text + render_text(f"The longest: {longest_phases}.") + render_details("Phases", "".join(parts))


def _render_rules(rules: Sequence[ProfilerRule]) -> str:
    ordered = sorted(rules, key=lambda rule: -rule.triggered)
    head = ("rule", "number of times triggered", "data points", "description")
    table = render_table(head, [(rule.name, rule.triggered, rule.data_points, describe_rule(rule)) for rule in ordered])
    advice = [
        (
            rule.name,
            " ".join(rule.advice) or "None: it tells what was used.",
            ", ".join(f"{name}: {value}" for name, value in rule.values.items()),
        )
        for rule in ordered
    ]
    quiet = [f"{rule.name}: {rule.remark()}" for rule in rules if not rule.triggered and _lacks(rule)]
    folded = render_table(("rule", "recommendation", "parameters"), advice)
    lacking = render_details("Rules that could not judge", "".join(map(render_text, quiet))) if quiet else ""
    return table + render_details("Recommendations and parameters", folded) + lacking


def _lacks(rule: ProfilerRule) -> bool:
    return rule.remark().startswith(("There was no GPU", "Nothing was judged", "How many cores"))


def _render_fired(rule: ProfilerRule, record: JobRecord) -> str:
    meaning = f"{describe_rule(rule)} It fired {count_noun(rule.triggered, 'time')} in "
    meaning += f"{count_noun(rule.data_points, 'data point')}."
    findings = "".join(f"<li>{escape(each.text)}</li>" for each in rule.findings[:_MOST_FINDINGS])
    advice = "".join(f"<li>{escape(each)}</li>" for each in rule.advice)
    if rule.violations > _MOST_FINDINGS:
        findings += f"<li>and {rule.violations - _MOST_FINDINGS} more, in profiler-reports/{rule.name}.json</li>"
    charts = _CHARTS[rule.name](rule, record) if rule.name in _CHARTS else ""
    found = f"{render_text(meaning)}<h3>What was found</h3><ul>{findings}</ul>"
    folded = render_details("Charts", charts) if charts else ""
    return f"{found}<h3>What to do</h3><ul>{advice}</ul>{folded}"


def _draw_steps(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
    rows, histograms = [], []
    for (node, mode), durations in sorted(record.steps.items()):
        values = np.asarray(durations, np.float64)
        percentiles = np.percentile(values, (100, 99, 95, 50, 0))
        rows.append((node, mode, len(values), float(values.mean()), *map(float, percentiles)))
        histograms.append(f"<h3>{escape(node)}, {escape(mode)}</h3>{render_histogram(values, 'seconds of a step')}")
    return render_table(("worker", "steps", "number", "mean", "max", "p99", "p95", "p50", "min"), rows) + "".join(
        histograms
    )


def _draw_boxes(*kinds: tuple[str, str]) -> Callable[[ProfilerRule, JobRecord], str]:
    def draw(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
        text = "Box: p25 to p75, with the median; whiskers: p5 and p95. All data points of the job, in percent."
        return render_text(text) + render_boxes(record.list_boxes(*kinds), "%")

    return draw


def _draw_lines(kind: tuple[str, str]) -> Callable[[ProfilerRule, JobRecord], str]:
    def draw(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
        return render_lines(record.list_lines(kind), "minutes", "%")

    return draw


def _draw_bottleneck(rule: ProfilerRule, record: JobRecord) -> str:
    assert isinstance(rule, BottleneckRule)
    times = rule.starved_times
    starved = float(sum(map(len, times.values())))
    pies: Mapping[str, Mapping[str, float]] = {
        "Data points with and without": {"bottleneck": starved, "none": sum(rule.observed.values()) - starved},
        **{f"{_PIES[title]}, at the bottleneck": values for title, values in group_phases(record.count_running(times))},
    }
    text = "The first circle is of all data points. The others show what ran in the node's processes at those with a "
    text += "bottleneck, where trace events came."
    return (
        render_text(text)
        + "".join(render_pie(values, title) for title, values in pies.items())
        + render_boxes(record.list_boxes(GPU, rule.busy), "%")
    )


def _draw_balance(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
    return render_lines(record.list_histograms(GPU), "utilisation, %", "data points, %")


def _draw_memory(rule: ProfilerRule, record: JobRecord) -> str:
    return _draw_boxes(GPU_MEMORY)(rule, record) + _draw_lines(GPU_MEMORY)(rule, record)


def _draw_loading(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
    found = sorted(record.seconds.items(), key=lambda item: -item[1])
    loading = [(phase, seconds) for phase, seconds in found if phase.startswith("Data")]
    return render_table(("phase", "seconds of all processes"), loading)


def _draw_summary(rule: ProfilerRule, record: JobRecord) -> str:  # noqa: ARG001 -- each is called alike
    return _render_summary(record)


_PIES = {
    "Steps": "Steps by mode, and the rest of the job",
    "Forward and backward": "Forward and backward passes",
    "Operators": "Operators of CPU and GPU",
    "General": "General framework metrics",
}
_HEADINGS = {
    "AllCoresBusy": "cores",
    "BatchSize": "batch size",
    "CPUBottleneck": "CPU bottlenecks",
    "Dataloader": "data loading",
    "GPUMemoryIncrease": "GPU memory",
    "IOBottleneck": "I/O bottlenecks",
    "LoadBalancing": "workload balancing",
    "LowGPUUtilization": "GPU utilisation",
    "MaxInitializationTime": "initialization",
    "MemoryGrowth": "memory",
    "SlowDataLoading": "data loading",
    "SmallBatches": "step durations",
    "StepOutlier": "step durations",
}
_CHARTS: Mapping[str, Callable[[ProfilerRule, JobRecord], str]] = {
    "AllCoresBusy": _draw_boxes(CPU),
    "BatchSize": _draw_boxes(CPU, GPU, GPU_MEMORY),
    "CPUBottleneck": _draw_bottleneck,
    "Dataloader": _draw_loading,
    "GPUMemoryIncrease": _draw_memory,
    "IOBottleneck": _draw_bottleneck,
    "LoadBalancing": _draw_balance,
    "LowGPUUtilization": _draw_boxes(GPU),
    "MaxInitializationTime": _draw_summary,
    "MemoryGrowth": _draw_lines(MEMORY),
    "SlowDataLoading": _draw_loading,
    "SmallBatches": _draw_steps,
    "StepOutlier": _draw_steps,
}
