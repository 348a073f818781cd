"""Executions of pipelines that EventBridge starts."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emulator.events.outcomes import DeliveryOutcome
from emulator.events.pipeline_target import start_pipeline
from emulator.events.publisher import Publisher
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.lambda_functions.worker import WorkerSettings
from tests.integration.emulator.operations.conftest import Service
from tests.integration.emulator.operations.test_pipelines import ROLE, create, fail, follow
from tests.integration.emulator.small_emulator import ACCOUNT, CREDENTIALS, REGION
from tests.waiting import wait_until

EVENT = {"Source": "mine", "DetailType": "data", "Detail": json.dumps({"key": "new.csv"})}


@pytest.fixture
def outcomes(service: Service, tmp_path: Path) -> Iterator[list[DeliveryOutcome]]:
    """Deliver events, and list what became of each."""
    found: list[DeliveryOutcome] = []
    workers = WorkerSettings(service.harness.runtime, service.endpoint_url, tmp_path, CREDENTIALS)
    invoker = FunctionInvoker(workers)
    publisher = Publisher(
        invoker,
        record=found.append,
        start_pipeline=partial(start_pipeline, service.harness.settings),
        replacing_in=lambda _service, replace: replace(),
    )
    try:
        yield found
    finally:
        publisher.close()
        invoker.close()


def put_rule(service: Service, name: str, *parameters: tuple[str, str]) -> None:
    events = service.client("events")
    events.put_rule(Name="data", EventPattern=json.dumps({"source": ["mine"]}))
    target: dict[str, Any] = {
        "Id": "p",
        "Arn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:pipeline/{name}",
        "RoleArn": ROLE,
        "SageMakerPipelineParameters": {"PipelineParameterList": [{"Name": n, "Value": v} for n, v in parameters]},
        "RetryPolicy": {"MaximumRetryAttempts": 0},
    }
    events.put_targets(Rule="data", Targets=[target])


def list_executions(service: Service, name: str) -> list[str]:
    found = service.client().list_pipeline_executions(PipelineName=name)["PipelineExecutionSummaries"]
    return [each["PipelineExecutionArn"] for each in found]


def test_a_rule_starts_an_execution_with_parameters_of_the_event(
    service: Service, outcomes: list[DeliveryOutcome]
) -> None:
    message = {"Std:Join": {"On": " ", "Values": [{"Get": "Parameters.mode"}, {"Get": "Parameters.key"}]}}
    parameters = [{"Name": name, "Type": "String"} for name in ("mode", "key")]
    create(service, "targeted", json.dumps({"Parameters": parameters, "Steps": [fail("End", message)]}))
    put_rule(service, "targeted", ("mode", "all"), ("key", "$.detail.key"))
    service.client("events").put_events(Entries=[EVENT])
    wait_until(lambda: list_executions(service, "targeted"), lambda: outcomes)
    (arn,) = list_executions(service, "targeted")
    assert follow(service, arn)["End"]["FailureReason"] == "all new.csv"


def test_an_event_that_is_delivered_twice_starts_one_execution(
    service: Service, outcomes: list[DeliveryOutcome]
) -> None:
    from emulator.moto_services.eventbridge.rules import matching_targets

    create(service, "twice", json.dumps({"Steps": [fail("End")]}))
    put_rule(service, "twice")
    (target,) = matching_targets(ACCOUNT, REGION, "default", {"source": "mine"})
    for _ in range(2):
        start_pipeline(service.harness.settings, target, {"id": "e"})
    assert len(list_executions(service, "twice")) == 1
    assert outcomes == []


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("nobodys", [], "Pipeline 'nobodys' does not exist"),
        ("refused-name", [("other", "1")], "no parameters other"),
        ("refused-path", [("other", "$.detail.none")], "nothing at $.detail.none"),
    ],
)
def test_a_delivery_that_is_refused_is_recorded(
    service: Service, outcomes: list[DeliveryOutcome], name: str, parameters: list[tuple[str, str]], said: str
) -> None:
    if parameters:
        create(service, name, json.dumps({"Steps": [fail("End")]}))
    put_rule(service, name, *parameters)
    service.client("events").put_events(Entries=[EVENT])
    wait_until(lambda: outcomes, lambda: outcomes)
    assert said in str(outcomes[0])
