"""Tests of the methods that wait for jobs, where they need no emulator."""

from typing import Any

import pytest

from sdk_compat.emulator_client import EmulatorClient

NOWHERE = EmulatorClient("http://127.0.0.1:1", "role")


@pytest.mark.parametrize("status", ["IssueFound", "InProgress", "issuesfound", ""])
def test_a_verdict_that_no_rule_has_is_refused_without_a_wait(status: str) -> None:
    with pytest.raises(ValueError, match=f"status '{status}': use NoIssuesFound, IssuesFound, Error, Stopped."):
        NOWHERE.assert_rule("job", "Overfit", status)


@pytest.mark.parametrize("status", ["Complete", "Stopping", ""])
def test_a_status_with_which_no_job_ends_is_refused_without_a_wait(status: str) -> None:
    with pytest.raises(ValueError, match=f"status '{status}': use Completed, Failed, Stopped."):
        NOWHERE.wait("job", status)


def test_the_rules_of_the_profiler_are_waited_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(["InProgress", "InProgress", "NoIssuesFound"])
    found = {"RuleConfigurationName": "Overfit", "RuleEvaluationStatus": "IssuesFound"}

    def describe(_sagemaker: object, name: str) -> dict[str, Any]:
        profiler = {"RuleConfigurationName": "ProfilerReport", "RuleEvaluationStatus": next(states)}
        return {
            "TrainingJobName": name,
            "DebugRuleEvaluationStatuses": [found],
            "ProfilerRuleEvaluationStatuses": [profiler],
        }

    monkeypatch.setattr(NOWHERE, "_describe", describe)
    assert NOWHERE.wait_for_rules("job") == {"Overfit": "IssuesFound", "ProfilerReport": "NoIssuesFound"}
