import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from emulator.stop_handler.deployment import build_code_zip, deploy_stop_handler
from tests.integration.emulator.events.test_publisher import Deliveries, build_event, put_rule
from tests.integration.emulator.small_emulator import REGION, Emulator
from tests.waiting import wait_until

HANDLER = "emulator.stop_handler.stop_handler_function"
# In the manner of the handler in AWS's guide: it looks at every status of the event and stops the job by name.
DOCUMENTED_STYLE = """
import boto3
import logging

logger = logging.getLogger()
logger.setLevel(logging.INFO)

def handler(event, context):
    job = event["detail"]["TrainingJobName"]
    logger.info("job %s is %s", job, event["detail"]["SecondaryStatus"])
    for status in event["detail"].get("DebugRuleEvaluationStatuses") or []:
        if status["RuleEvaluationStatus"] == "IssuesFound":
            client = boto3.client("sagemaker")
            client.stop_training_job(TrainingJobName=job)
    return {"statusCode": 200, "body": "done"}
"""


def build_statuses(**statuses: str) -> list[dict[str, str]]:
    return [
        {"RuleConfigurationName": name, "RuleEvaluationJobArn": "arn", "RuleEvaluationStatus": status}
        for name, status in statuses.items()
    ]


def publish(emulator: Emulator, **detail: Any) -> None:
    delivered = Deliveries()
    event = build_event(SecondaryStatus="Training", **detail)
    emulator.publisher.publish("e", REGION, event, delivered)
    delivered.wait(1)


@pytest.mark.slow
def test_job_with_an_issue_is_stopped_by_a_warm_worker(emulator: Emulator) -> None:
    deployed = deploy_stop_handler(emulator.client)
    assert deployed.function_arn.endswith(":function:smdebug-stop-training")
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="InProgress"))
    assert emulator.stops.names == []
    (warm,) = emulator.containers.find({})
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="NoIssuesFound", b="IssuesFound"))
    assert emulator.stops.wait(1) == ["job"]
    assert emulator.containers.find({}) == [warm], "none had to be started for it"
    assert all(each.permitted for each in emulator.outcomes)


@pytest.mark.slow
def test_job_that_ends_or_has_ended_is_left_alone(emulator: Emulator) -> None:
    deploy_stop_handler(emulator.client)
    ends = ["Stopping", "Stopped", "Completed", "Failed"]
    for status in ends:
        publish(emulator, TrainingJobStatus=status, DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
        publish(emulator, TrainingJobStatus=status)
    assert emulator.stops.names == []
    wait_until(
        lambda: emulator.log_text("smdebug-stop-training").count("END") == 2 * len(ends), "all of them were handled"
    )


@pytest.mark.slow
def test_stop_that_comes_too_late_is_no_failure_and_what_fails_is_tried_again(emulator: Emulator) -> None:
    emulator.stops.error = ("ValidationException", "The request was rejected because the training job is in status X.")
    deploy_stop_handler(emulator.client)
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
    assert emulator.stops.names == ["job"]

    def read_log() -> str:
        return emulator.log_text("smdebug-stop-training")

    wait_until(lambda: "END" in read_log() and "The stop of job came too late" in read_log(), "it was handled")
    assert "[ERROR]" not in read_log()
    # Other errors are tried again.
    emulator.stops.error = ("AccessDeniedException", "no")
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
    assert emulator.stops.names == ["job"] * 4


@pytest.fixture
def handler(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The handler's module as a worker has it, in the test's own process: its client asks the emulator."""
    sagemaker = emulator.client("sagemaker")
    monkeypatch.setattr("boto3.client", lambda _service: sagemaker)
    monkeypatch.delitem(sys.modules, HANDLER, raising=False)
    yield importlib.import_module(HANDLER)
    del sys.modules[HANDLER]


def test_filters(emulator: Emulator, handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_NAMES", "b, c")
    monkeypatch.setenv("JOB_NAME_PREFIX", "jo")

    def handle(**detail: Any) -> bool:
        return bool(handler.lambda_handler(build_event(**detail), None)["Stopped"])

    assert not handle(DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
    assert not handle(TrainingJobName="other", DebugRuleEvaluationStatuses=build_statuses(b="IssuesFound"))
    assert emulator.stops.names == []
    assert handle(DebugRuleEvaluationStatuses=build_statuses(b="IssuesFound"))
    assert emulator.stops.names == ["job"]
    # A rule of the profiler stops a job only if it is named.
    fired = {"ProfilerRuleEvaluationStatuses": build_statuses(b="IssuesFound")}
    monkeypatch.setenv("RULE_NAMES", "")
    assert not handle(**fired)
    monkeypatch.setenv("RULE_NAMES", "b")
    assert handle(**fired)
    assert emulator.stops.names == ["job"] * 2


@pytest.mark.slow
def test_what_it_is_deployed_with_reaches_the_handler(emulator: Emulator) -> None:
    deploy_stop_handler(emulator.client, "only-b", rule_names=["b", "c"], job_name_prefix="jo")
    publish(emulator, TrainingJobName="other", DebugRuleEvaluationStatuses=build_statuses(b="IssuesFound"))
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
    assert emulator.stops.names == []
    publish(emulator, ProfilerRuleEvaluationStatuses=build_statuses(c="IssuesFound"))
    assert emulator.stops.wait(1) == ["job"]


def test_second_deployment_updates_the_first(emulator: Emulator) -> None:
    first = deploy_stop_handler(emulator.client, "h", rule_names=["a"], job_name_prefix="x")
    assert deploy_stop_handler(emulator.client, "h", rule_names=["b"]) == first
    client, events = emulator.client("lambda"), emulator.client("events")
    variables = client.get_function_configuration(FunctionName="h")["Environment"]["Variables"]
    assert variables == {"RULE_NAMES": "b", "JOB_NAME_PREFIX": ""}
    assert "detail" not in json.loads(events.describe_rule(Name="h")["EventPattern"])
    assert len(events.list_targets_by_rule(Rule="h")["Targets"]) == 1
    policy = json.loads(client.get_policy(FunctionName="h")["Policy"])
    assert [statement["Principal"] for statement in policy["Statement"]] == [{"Service": "events.amazonaws.com"}]


def test_code_zip_is_the_same_every_time() -> None:
    assert build_code_zip() == build_code_zip()


@pytest.mark.slow
def test_handler_in_the_documented_style_works_unchanged(emulator: Emulator) -> None:
    arn = emulator.create_function(DOCUMENTED_STYLE, Timeout=30, MemorySize=256)
    put_rule(
        emulator,
        {"Arn": arn},
        pattern={"source": ["aws.sagemaker"], "detail-type": ["SageMaker Training Job State Change"]},
    )
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="InProgress"))
    publish(emulator, DebugRuleEvaluationStatuses=build_statuses(a="IssuesFound"))
    assert emulator.stops.wait(1) == ["job"]
    wait_until(lambda: "job job is Training" in emulator.log_text("fn"), "its log is in CloudWatch")


def test_a_permission_that_another_deployment_has_just_given_is_enough(emulator: Emulator) -> None:
    deployed = deploy_stop_handler(emulator.client)

    def connect(service: str) -> Any:
        client = emulator.client(service)
        if service == "lambda":

            def refuse(**_members: object) -> None:
                raise client.exceptions.ResourceConflictException({}, "AddPermission")

            client.get_policy = lambda **_members: {"Policy": '{"Statement": []}'}  # the answer of a moment before
            client.add_permission = refuse
        return client

    assert deploy_stop_handler(connect) == deployed
