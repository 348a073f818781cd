"""Tests of what a job's user sees of targets that fail with the job's events."""

import json
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo.training_job import build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator
from tests.integration.emulator.small_emulator import build_zip
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

HANDLER = """
def handler(event, context):
    raise RuntimeError(f"no luck with {event['id']}")
"""


def list_warnings(emulator: ForkedEmulator, code: str) -> list[str]:
    (job,) = emulator.ask("jobs")["jobs"]
    return [each["text"] for each in job["warnings"] if each["code"] == code]


def test_a_job_has_one_warning_of_each_target_that_fails(tmp_path: Path) -> None:
    with ForkedEmulator(tmp_path / "state", runtime="process", warm=None) as emulator:
        s3, iam, functions, events, sagemaker = (
            make_client(emulator.endpoint_url, service) for service in ("s3", "iam", "lambda", "events", "sagemaker")
        )
        s3.create_bucket(Bucket="bucket")
        role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        made: dict[str, Any] = {"Handler": "index.handler", "Runtime": "python3.11", "Role": role}
        code = {"ZipFile": build_zip(HANDLER)}
        arn = functions.create_function(FunctionName="stop", Code=code, **made)["FunctionArn"]
        functions.put_function_event_invoke_config(FunctionName="stop", MaximumRetryAttempts=0)
        gone = "arn:aws:sqs:us-east-1:123456789012:gone"
        events.put_rule(Name="rule", EventPattern=json.dumps({"source": ["aws.sagemaker"]}))
        targets = [{"Id": "0", "Arn": arn}, {"Id": "1", "Arn": gone, "RetryPolicy": {"MaximumRetryAttempts": 0}}]
        events.put_targets(Rule="rule", Targets=targets)
        rule = events.put_rule(Name="other", EventPattern=json.dumps({"source": ["aws.sagemaker"]}))["RuleArn"]
        events.put_targets(Rule="other", Targets=[{"Id": "0", "Arn": arn}])
        functions.add_permission(
            FunctionName="stop",
            StatementId="events",
            Action="lambda:InvokeFunction",
            Principal="events.amazonaws.com",
            SourceArn=rule,
        )
        request = build_training_job(
            "job", image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket="bucket"
        )
        sagemaker.create_training_job(**request)
        wait_until(lambda: emulator.ask("jobs")["jobs"][0]["status"] == "Failed")
        wait_until(lambda: emulator.ask("health")["undeliveredEvents"] == 0)
        assert len(emulator.ask("events")["events"]) > 1
        of_function, of_queue = sorted(list_warnings(emulator, "EventTargetFailed"))
        (of_permission,) = list_warnings(emulator, "FunctionNotPermitted")
    assert of_function.startswith("The function stop failed with an event of this job: RuntimeError: no luck with ")
    assert of_function.endswith(" (index.py, line 3).")
    assert of_queue.startswith(f"The target {gone} failed with an event of this job: ")
    assert of_permission.startswith("The function stop ran with an event of this job although its policy does not let ")
    assert "FunctionName='stop'" in of_permission
    assert of_permission.endswith("SourceArn='arn:aws:events:us-east-1:123456789012:rule/rule').")
