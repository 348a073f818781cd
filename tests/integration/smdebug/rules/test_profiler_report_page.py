"""Test of ProfilerReport's page in a browser."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from smdebug.profiler.system_samples import Sample
from smdebug.profiler.trace_events import TraceEvent
from tests.chromium import opened_chromium
from tests.unit.smdebug.rules.profiling.test_profiler_report import JOB, SHORT, build_report
from tests.unit.smdebug.rules.profiling.test_profiler_rules import SICK

WIDTH, HEIGHT = 1280, 900
# Whose sections are of what it has found.
SUMMARY = ("Training job summary", "System usage statistics", "Framework metrics summary", "Rules summary")


@pytest.mark.nightly  # a browser, to measure a page
def test_the_summary_of_a_job_with_every_fault_takes_three_screens(tmp_path: Path) -> None:
    """Nothing is wider than the window, and no sentence shows marks of Markdown."""
    samples: list[Sample] = []
    events: list[TraceEvent] = []
    for rule_samples, rule_events, *_ in SICK.values():
        samples += [replace(each, time=each.time + 1000 * len(samples)) for each in rule_samples]
        events += rule_events
    report = build_report(samples, events, **SHORT)
    assert sum(bool(rule.triggered) for rule in report.rules) >= 10
    path = tmp_path / "profiler-report.html"
    path.write_text(report.render_files(JOB)[path.name])
    with opened_chromium() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(path.as_uri())
        headings = page.locator("h2").all_inner_texts()
        first = page.locator("h2").nth(sum(text in SUMMARY for text in headings)).bounding_box()
        assert first is not None
        assert first["y"] <= 3 * HEIGHT
        # Of a rule no more is to be seen than its heading, and what unfolds the rest.
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height - first["y"] <= 150 * (len(headings) - len(SUMMARY))
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        text = page.locator("body").inner_text()
        assert not re.search(r"`|\*\*", text)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
