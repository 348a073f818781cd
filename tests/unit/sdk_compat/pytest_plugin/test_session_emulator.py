"""Tests of the jobs that the pytest plugin collects."""

from pathlib import Path
from typing import Any

import pytest

from sdk_compat.pytest_plugin.emulator import SessionEmulator

LISTED = {
    "name": "job",
    "region": "us-east-1",
    "creationMs": 1000,
    "status": "InProgress",
    "failureReason": None,
    "warnings": [],
}
WARNING = {"code": "NoGpu", "text": "There is no GPU.", "remedy": "Expect longer times."}
RULE = {"RuleConfigurationName": "Overfit", "RuleEvaluationStatus": "IssuesFound"}
DESCRIBED = {
    **LISTED,
    "status": "Failed",
    "failureReason": "it broke",
    "warnings": [WARNING],
    "description": {"DebugRuleEvaluationStatuses": [RULE]},
}


class Process:
    """An emulator whose job fails after the jobs were listed."""

    endpoint_url = "http://127.0.0.1:9"
    state_dir = Path("state")

    def ask(self, path: str) -> Any:
        return {"jobs": [LISTED]} if path.startswith("jobs?") else {"jobs/us-east-1/job": DESCRIBED}[path]


def test_a_job_is_reported_as_it_is_when_its_rules_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sdk_compat.pytest_plugin.emulator.prepare_environment", lambda *_, **__: {})
    (job,) = SessionEmulator(tmp_path, Process()).collect_jobs(with_plots=False)  # type: ignore[arg-type]
    assert (job["status"], job["reason"], job["warnings"]) == ("Failed", "it broke", [WARNING])
    assert [(rule["name"], rule["status"]) for rule in job["rules"]] == [("Overfit", "IssuesFound")]
