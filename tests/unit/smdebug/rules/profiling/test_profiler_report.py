"""Tests of ProfilerReport: parameters, pages, and all kinds of jobs."""

import doctest
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.profiling import job_record
from smdebug.rules.profiling.builtin.profiler_report import ProfilerReport
from smdebug.rules.profiling.evaluation import conclude, write_report
from smdebug.rules.profiling.profiler_rule import ProfiledJob, ProfilerRule
from tests.unit.smdebug.rules.profiling.test_profiler_rules import SICK, build_samples, build_steps, load

JOB = ProfiledJob("my <job>", "s3://bucket/my-job/profiler-output", ended=True)
# What each rule is given where it is tested by itself.
SHORT: dict[str, Any] = {
    f"{rule}_{name}": value for rule, (_, _, given, _, _) in SICK.items() for name, value in given.items()
}


class Page(HTMLParser):
    """What a page's tags are, and whether each is closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.asked: list[str] = []
        self.headings: list[str] = []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.asked += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)


def build_report(samples: Any = (), events: Any = (), *, finish: bool = True, **given: Any) -> ProfilerReport:
    report = ProfilerReport(**given)
    for sample in samples:
        report.add_sample(sample)
    for event in events:
        report.add_event(event)
    if finish:
        report.finish()
    return report


def read_page(report: ProfilerRule, job: ProfiledJob = JOB) -> tuple[Page, str]:
    content = report.render_files(job)["profiler-report.html"]
    return Page(content), content


@pytest.mark.slow
@pytest.mark.parametrize("name", SICK)
def test_each_rule_that_finds_something_has_its_section(name: str) -> None:
    samples, events, _, triggered, text = SICK[name]
    report = build_report(samples, events, **SHORT)
    page, content = read_page(report)
    assert [each for each in page.headings if each.startswith(f"{name}:")]
    for rule in report.rules:
        assert any(each.startswith(f"{rule.name}:") for each in page.headings) == bool(rule.triggered)
        if rule.name == name:
            assert rule.triggered == triggered
            assert all(line.replace("'", "&#x27;") in content for line in rule.advice)
            assert text in content
    verdict = conclude(report)
    assert verdict.status == "IssuesFound"
    assert f"{name} {triggered} time" in verdict.details
    assert len(verdict.details) <= 1024


def test_the_sections_are_aws_s_and_the_most_fired_rule_comes_first() -> None:
    samples, _, _, _, _ = SICK["CPUBottleneck"]
    steps = build_steps(([0.1] * 9 + [0.5]) * 20, begin=200.0)
    passes = build_steps([0.05] * 20, "Forward", begin=200.0) + build_steps([0.02] * 20, "Backward(post-forward)")
    operators = build_steps([0.01] * 5, "cpu_functions") + build_steps([0.02] * 5, "gpu_functions-dev:0")
    report = build_report(samples, [*steps, *passes, *operators, *load(1)], **SHORT)
    page, content = read_page(report)
    assert page.headings[:4] == [
        "Training job summary",
        "System usage statistics",
        "Framework metrics summary",
        "Rules summary",
    ]
    fired = [each.partition(":")[0] for each in page.headings[4:]]
    counts = {rule.name: rule.triggered for rule in report.rules}
    assert fired == sorted(fired, key=lambda each: -counts[each])
    assert {"CPUBottleneck", "StepOutlier", "Dataloader"} <= set(fired)
    for member in (
        "start_time",
        "job_duration_in_seconds",
        "training_loop_start",
        "training_loop_duration_in_seconds",
        "initialization_in_seconds",
        "finalization_in_seconds",
        "initialization_%",
    ):
        assert f"<td>{member}</td>" in content
    # Texts are read from the left, numbers stand below each other from the right.
    assert '<th>node</th><th>metric</th><th>unit</th><th class="number">max</th>' in content
    assert re.search(r'<td>algo-1</td><td>GPU</td><td>percent</td><td class="number">\d', content)
    assert "<h3>CPU operators</h3>" in content
    assert "<h3>GPU operators</h3>" in content
    assert content.count("at the bottleneck") == 2, "steps and forward passes ran while a GPU starved"
    assert "my &lt;job&gt;" in content
    for rule in report.rules:
        assert f"<tr><td>{rule.name}</td>" in content


def test_the_page_begins_with_a_short_summary_and_folds_the_rest() -> None:
    samples, _, _, _, text = SICK["CPUBottleneck"]
    steps = build_steps(([0.1] * 9 + [0.5]) * 20, begin=200.0)
    _, content = read_page(build_report(samples, steps, **SHORT))
    unfolded = re.sub(r"<details>.*?</details>", "", content, flags=re.DOTALL)
    assert "`" not in content
    assert unfolded.index(f"<li>CPUBottleneck: algo-1: {text[:10]}") < unfolded.index("<h2>System usage statistics")
    assert "<th>rule</th>" in unfolded
    assert "<th>description</th>" in unfolded
    assert "<svg" not in unfolded
    for folded in ("<th>recommendation</th>", "<th>parameters</th>", "<svg", "How many cores"):
        assert folded not in unfolded
    for folded in ("<th>recommendation</th>", "<th>parameters</th>", "<svg"):
        assert folded in content
    assert "No rule has found an issue." in read_page(build_report())[1]


def test_the_page_asks_nobody_for_anything() -> None:
    report = build_report(*SICK["LowGPUUtilization"][:2], **SHORT, opt_out_telemetry="False")
    page, content = read_page(report)
    assert page.asked == []
    assert not re.search(r"<script|@import|url\(|https?:", content)
    assert not re.search(r"https?:", report.render_files(JOB)["profiler-report.ipynb"])


@pytest.mark.parametrize(
    ("samples", "events", "says"),
    [
        ([], [], "Neither a system metric nor a trace event has come"),
        (build_samples(1, memory=[3.0]), [], "No trace event has come"),
        ([], build_steps([0.1]), "No system metric has come"),
        ([], build_steps([0.0] * 3), "No system metric has come"),
        (build_samples(5, cpu=[150.0, -3.0]) + build_samples(3, begin=10**15, cpu=[1.0]), [], "s since the epoch"),
        (build_samples(5, cpu=[1.0]), build_steps([0.1], "Step:ModeKeys.EVAL", begin=-1e6), "EVAL"),
        (build_samples(5, node="algo-2 <b>", cpu=[99.0]), load(3), "algo-2 &lt;b&gt;"),
    ],
    ids=["nothing", "one sample", "one step", "steps of no time", "a clock far off", "steps before", "names"],
)
def test_of_every_job_there_is_a_page(samples: Any, events: Any, says: str) -> None:
    report = build_report(samples, events)
    page, content = read_page(report)
    assert page.headings[0] == "Training job summary"
    assert says in content
    assert conclude(report).details


def test_while_the_job_runs_it_is_reported_and_nothing_counts_twice() -> None:
    samples, _, _, triggered, _ = SICK["CPUBottleneck"]
    report = build_report(samples[:350], finish=False, **SHORT)
    _, content = read_page(report, ProfiledJob("job", "somewhere", damaged=2))
    assert "still running" in content
    assert "2 damaged lines" in content
    for sample in samples[350:]:
        report.add_sample(sample)
    report.finish()
    counts = {rule.name: rule.triggered for rule in report.rules}
    assert counts["CPUBottleneck"] == triggered
    assert report.triggered == sum(counts.values())
    assert "still running" not in read_page(report)[1]


def test_parameters_of_rules_in_every_way_that_they_come() -> None:
    text = str({"CPUBottleneck_cpu_threshold": 80, "lowgpuutilization_WINDOW": "7"})
    report = ProfilerReport(custom_rule_parameters=text, StepOutlier_n_outliers="3", scan_interval_us="1000000")
    values = {rule.name: rule.values for rule in report.rules}
    assert values["CPUBottleneck"]["cpu_threshold"] == 80
    assert values["LowGPUUtilization"]["window"] == 7
    assert values["StepOutlier"]["n_outliers"] == 3
    assert {each["scan_interval_us"] for each in values.values()} == {1_000_000}
    assert ProfilerReport(custom_rule_parameters="{}", opt_out_telemetry="True").values["opt_out_telemetry"] is True
    assert ProfilerReport(custom_rule_parameters="").rules


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"custom_rule_parameters": "__import__('os').abort()"}, "expected the text of a dictionary"),
        ({"custom_rule_parameters": "[1]"}, "expected the text of a dictionary"),
        ({"custom_rule_parameters": "{'Nothing_x': 1}"}, "no parameter 'Nothing_x'"),
        ({"CPUBottleneck_nothing": "1"}, "Rule CPUBottleneck: there is no parameter 'nothing'"),
        ({"CPUBottleneck_threshold": "high"}, "parameter threshold is 'high', expected a number"),
        ({"opt_out_telemetry": "perhaps"}, "expected True or False"),
    ],
)
def test_what_it_cannot_use_is_refused_in_words(given: dict[str, str], said: str) -> None:
    with pytest.raises(SMDebugValueError, match=re.escape(said)):
        ProfilerReport(**given)


def test_its_files_lie_where_aws_has_them(tmp_path: Path) -> None:
    samples, events, _, triggered, _ = SICK["CPUBottleneck"]
    report = build_report(samples, events, **SHORT)
    write_report(report, tmp_path, JOB)
    write_report(report, tmp_path, JOB)
    folder = tmp_path / "profiler-output"
    assert {path.name for path in folder.iterdir()} == {
        "profiler-report.html",
        "profiler-report.ipynb",
        "profiler-reports",
    }
    written = {path.stem: json.loads(path.read_text()) for path in (folder / "profiler-reports").iterdir()}
    assert written.keys() == {rule.name for rule in report.rules}
    assert "ProfilerReport" not in written
    assert written["CPUBottleneck"]["RuleTriggered"] == triggered


def test_doctests() -> None:
    assert doctest.testmod(job_record) == (0, 3)
