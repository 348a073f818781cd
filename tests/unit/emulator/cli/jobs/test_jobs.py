"""Tables of jobs: what runs in place of what a job asked for."""

import re
from typing import Any

import pytest

from emulator.cli.jobs.jobs import format_jobs, format_markdown

CREATED = 1_764_000_000.0


def summarize(name: str, *briefs: str) -> dict[str, Any]:
    warnings = [{"code": "c", "text": "t", "remedy": "r", "brief": each} for each in briefs]
    return {
        "TrainingJobName": name,
        "TrainingJobStatus": "Completed",
        "CreationTime": CREATED,
        "Region": "us-east-1",
        "Warnings": warnings,
    }


@pytest.fixture
def summaries() -> list[dict[str, Any]]:
    return [summarize("old", "asked 2.3.0, runs 2.13.0", "", "ml.p4d.24xlarge: no GPU here"), summarize("new")]


def test_substitutions_are_reported_below_their_job(summaries: list[dict[str, Any]]) -> None:
    lines = format_jobs(summaries).splitlines()
    assert [line.split()[0] for line in lines] == ["Training", "old", "asked", "new"]
    assert lines[2] == "  asked 2.3.0, runs 2.13.0; ml.p4d.24xlarge: no GPU here"


@pytest.mark.parametrize(("briefs", "marked"), [(["asked 2.3.0, runs 2.13.0"], False), (["asked 2.3.0", ""], True)])
def test_what_the_line_below_says_has_no_mark(briefs: list[str], *, marked: bool) -> None:
    assert ("Completed !" in format_jobs([summarize("old", *briefs)])) == marked


def test_substitutions_are_reported_beside_the_status_in_markdown(summaries: list[dict[str, Any]]) -> None:
    assert format_markdown(summaries).splitlines()[2:] == [
        "| old | Completed; asked 2.3.0, runs 2.13.0; ml.p4d.24xlarge: no GPU here |  |  |",
        "| new | Completed |  |  |",
    ]


def test_an_older_emulator_tells_no_briefs() -> None:
    job = summarize("old")
    job["Warnings"] = [{"code": "NoGpu", "text": "t", "remedy": "r"}]
    assert len(format_jobs([job]).splitlines()) == 2


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        (["Error", "IssuesFound", "Error"], "1/3 IssuesFound, 2/3 Error"),
        (["NoIssuesFound", "Error", "InProgress"], "1/3 Error"),
        (["NoIssuesFound", "InProgress", "Stopped"], "1/3 InProgress"),
        (["NoIssuesFound", "NoIssuesFound"], "2/2 NoIssuesFound"),
        ([], "-"),
    ],
)
def test_no_verdict_hides_rules_that_failed(statuses: list[str], shown: str) -> None:
    job = summarize("job") | {"DebugRuleEvaluationStatuses": [{"RuleEvaluationStatus": each} for each in statuses]}
    assert re.split(" {2,}", format_jobs([job]).splitlines()[1])[2] == shown
