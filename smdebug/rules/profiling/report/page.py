"""ProfilerReport page: AWS's sections in one self-contained HTML file.

It sends no request when it is opened.
"""

import inspect
from collections.abc import Sequence
from html import escape

from smdebug.rules.drawing.html_page import render_details, render_page, render_pie, render_table, render_text
from smdebug.rules.profiling.charts import PHASE_TITLES
from smdebug.rules.profiling.job_record import JobRecord, group_phases
from smdebug.rules.profiling.profiler_rule import ProfiledJob, ProfilerRule
from smdebug.rules.profiling.summary import NO_EVENTS, render_summary
from smdebug.rules.wording import count_noun

_MOST_OPERATORS = 20
_MOST_FINDINGS = 3
_MOST_PHASES = 5


def describe_rule(rule: ProfilerRule) -> str:
    """Return what a rule watches for, in a sentence without markup."""
    return (inspect.getdoc(type(rule)) or "").partition("\n")[0].replace("`", "")


def render_report(job: ProfiledJob, record: JobRecord, rules: Sequence[ProfilerRule]) -> str:
    """Return the page of a job so far."""
    state = "The job has ended." if job.ended else "The job is still running: this page is renewed meanwhile."
    if job.damaged:
        state += f" {count_noun(job.damaged, 'damaged line')} of its profile could not be read and left out."
    fired = sorted((rule for rule in rules if rule.triggered), key=lambda rule: -rule.triggered)
    sections = [
        ("Training job summary", render_text(state) + _render_verdict(fired) + render_summary(record)),
        ("System usage statistics", _render_usage(rules)),
        ("Framework metrics summary", _render_framework(record)),
        ("Rules summary", _render_rules(rules)),
        *((f"{rule.name}: {rule.heading}", _render_fired(rule, record)) for rule in fired),
    ]
    return render_page(f"Profiler report of {job.name}", sections)


def _render_verdict(fired: Sequence[ProfilerRule]) -> str:
    """Return the first finding of each rule that fired, the most fired first."""
    if not fired:
        return render_text("No rule has found an issue.")
    found = "".join(f"<li>{escape(rule.name)}: {escape(rule.findings[0].text)}</li>" for rule in fired)
    return f"<ul>{found}</ul>"


def _render_usage(rules: Sequence[ProfilerRule]) -> str:
    (usage,) = (rule.describe_details()["Usage"] for rule in rules if rule.name == "OverallSystemUsage")
    if not usage:
        return render_text("No system metric has come.")
    head = ("node", "metric", "unit", "max", "p99", "p95", "p50", "min")
    text = "Of several cores or GPUs it is their mean; a node without a GPU has no line of one."
    return render_text(text) + render_table(head, [[row[name] for name in head] for row in usage])


def _render_framework(record: JobRecord) -> str:
    if not record.seconds:
        return render_text(NO_EVENTS)
    pies = dict(group_phases(record.seconds))
    others = record.last - record.first - sum(pies.get("Steps", {}).values())
    if "Steps" in pies and others > 0:
        pies["Steps"]["others"] = others
    phases = sorted(record.seconds.items(), key=lambda item: -item[1])
    text = render_text("Seconds of all processes together.")
    parts = [render_pie(values, PHASE_TITLES[title]) for title, values in pies.items()]
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
    charts = rule.draw_charts(record)
    found = f"{render_text(meaning)}<h3>What was found</h3><ul>{findings}</ul><h3>What to do</h3><ul>{advice}</ul>"
    return render_details(
        "What was found, and what to do", found + (render_details("Charts", charts) if charts else "")
    )
