"""Tables of jobs: what runs in place of what a job asked for."""

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


def test_substitutions_are_reported_beside_the_status_in_markdown(summaries: list[dict[str, Any]]) -> None:
    assert format_markdown(summaries).splitlines()[2:] == [
        "| old | Completed; asked 2.3.0, runs 2.13.0; ml.p4d.24xlarge: no GPU here |  |  |",
        "| new | Completed |  |  |",
    ]


def test_an_older_emulator_tells_no_briefs() -> None:
    job = summarize("old")
    job["Warnings"] = [{"code": "NoGpu", "text": "t", "remedy": "r"}]
    assert len(format_jobs([job]).splitlines()) == 2
