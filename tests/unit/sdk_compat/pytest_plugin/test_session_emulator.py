"""Tests of the jobs that the pytest plugin collects."""

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

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


def test_a_bucket_that_a_test_deleted_costs_a_plot_and_not_the_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sdk_compat.pytest_plugin.emulator.prepare_environment", lambda *_, **__: {})
    profiler = {**RULE, "RuleConfigurationName": "Profile"}
    description = {
        "TrainingJobName": "job",
        "OutputDataConfig": {"S3OutputPath": "s3://deleted/out"},
        "DebugRuleConfigurations": [{"RuleConfigurationName": "Overfit"}],
        "DebugRuleEvaluationStatuses": [RULE],
        "ProfilerRuleConfigurations": [{"RuleConfigurationName": "Profile"}],
        "ProfilerRuleEvaluationStatuses": [profiler],
    }
    monkeypatch.setitem(DESCRIBED, "description", description)
    emulator = SessionEmulator(tmp_path, Process())  # type: ignore[arg-type]
    s3 = boto3.client("s3", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    monkeypatch.setattr(emulator, "client", lambda _service, _region: s3)
    with Stubber(s3) as stubber:
        stubber.add_client_error("list_objects_v2", "NoSuchBucket")
        stubber.add_client_error("list_objects_v2", "NoSuchBucket")
        (job,) = emulator.collect_jobs(with_plots=True)
    assert [(rule["name"], rule["plot"]) for rule in job["rules"]] == [("Overfit", None), ("Profile", None)]
