"""Tests of a job that a rule of the profiler stops while it runs.

System metrics are uploaded by the minute, so that such a job takes more than one.
"""

import uuid
from typing import Any

import pytest

from emulator.stop_handler.deployment import deploy_stop_handler
from sdk_compat.demo.training_job import BUCKET, SICK, build_request, build_rule
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]

SCAN = {"patience": "1", "scan_interval_us": "5000000"}


def build_profiled(name: str) -> dict[str, Any]:
    """Build the request of a job that would train for minutes, with a rule that fires and one that cannot."""
    request = build_request(name, SICK)
    del request["DebugRuleConfigurations"]
    request["ProfilerConfig"] = {"S3OutputPath": f"s3://{BUCKET}/profiles", "ProfilingIntervalInMilliseconds": 500}
    request["ProfilerRuleConfigurations"] = [
        {**build_rule("AllCoresBusy", cpu_threshold="100", **SCAN), "RuleConfigurationName": "Never"},
        {**build_rule("AllCoresBusy", cpu_threshold="0", threshold="20", **SCAN), "RuleConfigurationName": "Busy"},
    ]
    return request


def test_a_job_is_stopped_by_its_profiler_rule(staged: RunningEmulator) -> None:
    name = f"profiler-stops-{uuid.uuid4().hex[:8]}"
    sagemaker = staged.client("sagemaker")
    deploy_stop_handler(staged.client, f"stop-{name}", rule_names=["Never", "Busy"], job_name_prefix=name)
    sagemaker.create_training_job(**build_profiled(name))

    def describe() -> dict[str, Any]:
        return sagemaker.describe_training_job(TrainingJobName=name)

    wait_until(lambda: describe()["TrainingJobStatus"] == "Stopped", f"{name} is stopped", seconds=300)
    found = {each["RuleConfigurationName"]: each for each in describe()["ProfilerRuleEvaluationStatuses"]}
    assert found["Busy"]["RuleEvaluationStatus"] == "IssuesFound"
    assert "Rule AllCoresBusy fired " in found["Busy"]["StatusDetails"]
    stages = [each["Status"] for each in describe()["SecondaryStatusTransitions"]]
    assert stages[-2:] == ["Stopping", "Stopped"]

    def has_ended() -> bool:
        statuses = {
            each["RuleConfigurationName"]: each["RuleEvaluationStatus"]
            for each in describe()["ProfilerRuleEvaluationStatuses"]
        }
        return statuses["Never"] == "NoIssuesFound"

    wait_until(has_ended, f"the other rule of {name} has found nothing", seconds=90)
