"""Charts below the findings of a profiler rule, as HTML."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from smdebug.profiler.system_samples import GPU, GPU_MEMORY, Kind
from smdebug.rules.drawing.html_page import (
    render_boxes,
    render_histogram,
    render_lines,
    render_pie,
    render_table,
    render_text,
)
from smdebug.rules.profiling.job_record import JobRecord, group_phases

PHASE_TITLES = {
    "Steps": "Steps by mode, and the rest of the job",
    "Forward and backward": "Forward and backward passes",
    "Operators": "Operators of CPU and GPU",
    "General": "General framework metrics",
}
"""Titles of charts of a job's phases, by the name of their group."""


def draw_steps(record: JobRecord) -> str:
    """Return a table and histograms of the steps' durations, for each worker and mode."""
    rows, histograms = [], []
    for (node, mode), durations in sorted(record.steps.items()):
        values = np.asarray(durations, np.float64)
        percentiles = np.percentile(values, (100, 99, 95, 50, 0))
        rows.append((node, mode, len(values), float(values.mean()), *map(float, percentiles)))
        histograms.append(f"<h3>{escape(node)}, {escape(mode)}</h3>{render_histogram(values, 'seconds of a step')}")
    return render_table(("worker", "steps", "number", "mean", "max", "p99", "p95", "p50", "min"), rows) + "".join(
        histograms
    )


def draw_boxes(record: JobRecord, *kinds: Kind) -> str:
    """Return a box plot of system metrics."""
    text = "Box: p25 to p75, with the median; whiskers: p5 and p95. All data points of the job, in percent."
    return render_text(text) + render_boxes(record.list_boxes(*kinds), "%")


def draw_lines(record: JobRecord, kind: Kind) -> str:
    """Return a system metric over the job's minutes."""
    return render_lines(record.list_lines(kind), "minutes", "%")


def draw_bottleneck(record: JobRecord, busy: Kind, times: Mapping[str, Sequence[float]], observed: int) -> str:
    """Return at how many of the samples `busy` was a bottleneck, and what ran in the node's processes then.

    Args:
        record: of the job.
        busy: what was the bottleneck.
        times: when it was, by node, in seconds since the epoch.
        observed: the number of samples.
    """
    starved = float(sum(map(len, times.values())))
    pies: Mapping[str, Mapping[str, float]] = {
        "Data points with and without": {"bottleneck": starved, "none": observed - starved},
        **{
            f"{PHASE_TITLES[title]}, at the bottleneck": values
            for title, values in group_phases(record.count_running(times))
        },
    }
    text = "The first circle is of all data points. The others show what ran in the node's processes at those with a "
    text += "bottleneck, where trace events came."
    return (
        render_text(text)
        + "".join(render_pie(values, title) for title, values in pies.items())
        + render_boxes(record.list_boxes(GPU, busy), "%")
    )


def draw_balance(record: JobRecord) -> str:
    """Return the distributions of the GPUs' utilisation."""
    return render_lines(record.list_histograms(GPU), "utilisation, %", "data points, %")


def draw_memory(record: JobRecord) -> str:
    """Return the memory of the GPUs, as boxes and over time."""
    return draw_boxes(record, GPU_MEMORY) + draw_lines(record, GPU_MEMORY)


def draw_loading(record: JobRecord) -> str:
    """Return a table of the phases that load data."""
    found = sorted(record.seconds.items(), key=lambda item: -item[1])
    loading = [(phase, seconds) for phase, seconds in found if phase.startswith("Data")]
    return render_table(("phase", "seconds of all processes"), loading)
