"""Tests of deliveries: their attempts, their outcomes, and their end."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from emulator.events.outcomes import DeliveryOutcome
from emulator.exceptions import InvokerClosedError, TargetError
from emulator.faults import FAULTS, Fault
from emulator.lambda_functions.invocation import InvocationResult
from emulator.moto_services.eventbridge.rules import Target
from tests.integration.emulator.events.test_publisher import Deliveries, build_event, create_queue, put_rule, receive
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator


@pytest.fixture
def fault() -> Iterator[Fault]:
    """Every delivery fails as often as ``times`` says."""
    fault = Fault({"error": 1.0}, times=0)
    FAULTS.set({"events": fault})
    yield fault
    FAULTS.set({})


def create_topic(emulator: Emulator) -> str:
    sns = emulator.client("sns")
    topic = str(sns.create_topic(Name="topic")["TopicArn"])
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=create_queue(emulator))
    return topic


def test_what_became_of_each_delivery_is_recorded(emulator: Emulator) -> None:
    function = emulator.create_function(
        """
        def handler(event, context):
            if event == {"fail": True}:
                raise ValueError("no luck")
            return "done"
        """
    )
    emulator.client("lambda").put_function_event_invoke_config(FunctionName="fn", MaximumRetryAttempts=0)
    queue, gone = create_queue(emulator), f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone"
    put_rule(
        emulator,
        {"Arn": queue},
        {"Arn": function},
        {"Arn": function, "Input": '{"fail": true}'},
        {"Arn": gone, "RetryPolicy": {"MaximumRetryAttempts": 1}},
    )
    delivered = Deliveries()
    event = build_event()
    emulator.publisher.publish("e1", REGION, event, delivered)
    delivered.wait(1)
    outcomes = sorted(emulator.outcomes, key=lambda outcome: outcome.target_id)
    rule = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/rule"
    assert {(each.event_id, each.account, each.rule_arn) for each in outcomes} == {(event["id"], ACCOUNT, rule)}
    assert [each.target_arn for each in outcomes] == [queue, function, function, gone]
    assert [each.succeeded for each in outcomes] == [True, True, False, False]
    assert [outcomes[0].answer, outcomes[1].answer] == ["", '"done"']
    assert "no luck" in outcomes[2].answer
    assert "gone does not exist" in outcomes[3].answer
    assert [bool(each.request_id) for each in outcomes] == [False, True, True, False]
    assert [each.permitted for each in outcomes] == [True, False, False, True], "the function has no policy"


def test_an_outcome_that_cannot_be_recorded_holds_up_no_delivery(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(outcome: DeliveryOutcome) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(emulator, "note", fail)
    put_rule(emulator, {"Arn": create_queue(emulator)}, {"Arn": f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/x"})
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]
    assert receive(emulator) == [build_event()]


@pytest.mark.parametrize("kind", ["queue", pytest.param("topic", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("retries", "arrives"), [(1, False), (2, True)])
def test_a_delivery_has_as_many_retries_as_its_target_says(
    emulator: Emulator, fault: Fault, kind: str, retries: int, arrives: bool
) -> None:
    arn = create_queue(emulator) if kind == "queue" else create_topic(emulator)
    put_rule(emulator, {"Arn": arn, "RetryPolicy": {"MaximumRetryAttempts": retries}})
    fault.times = 2
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]
    assert fault.struck == {"error": 2}
    assert [outcome.succeeded for outcome in emulator.outcomes] == [arrives]


def test_a_delivery_has_four_retries_without_a_policy(emulator: Emulator, fault: Fault) -> None:
    put_rule(emulator, {"Arn": create_queue(emulator)})
    fault.times = 9
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    delivered.wait(1)
    assert fault.struck == {"error": 5}


def test_an_event_that_is_too_old_is_not_tried_again(emulator: Emulator, fault: Fault) -> None:
    policy = {"MaximumEventAgeInSeconds": 0}  # AWS takes no less than a minute
    arn = create_queue(emulator)
    target = Target("rule", ACCOUNT, REGION, "default", "0", arn, parameters={"RetryPolicy": policy})
    fault.times = 9
    emulator.publisher.send([target], build_event())
    assert emulator.publisher.drain(60)
    assert fault.struck == {"error": 2}
    assert [outcome.succeeded for outcome in emulator.outcomes] == [False]


def test_a_target_that_refuses_an_event_is_not_tried_again(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request would be refused each time; an event that could not get through is tried again."""
    tries: list[str] = []

    def start_pipeline(target: Target, event: Mapping[str, Any]) -> None:
        tries.append(target.arn)
        raise TargetError("its parameter Alpha is missing") if len(tries) == 2 else OSError("no connection")

    monkeypatch.setattr(emulator, "start_pipeline", start_pipeline)
    put_rule(emulator, {"Arn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:pipeline/p"})
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]
    assert len(tries) == 2
    assert [outcome.answer for outcome in emulator.outcomes] == ["its parameter Alpha is missing"]


def test_a_dead_letter_queue_that_is_gone_holds_up_nobody(emulator: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    gone = f"arn:aws:sqs:{REGION}:{ACCOUNT}:gone"
    policy: dict[str, Any] = {"DeadLetterConfig": {"Arn": gone}, "RetryPolicy": {"MaximumRetryAttempts": 0}}
    put_rule(emulator, {"Arn": f"{gone}-too", **policy})
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]
    assert f"did not reach the dead-letter queue {gone}." in caplog.text


def test_a_closed_publisher_delivers_nothing_more(emulator: Emulator) -> None:
    put_rule(emulator, {"Arn": create_queue(emulator)}, pattern={"source": ["my.app"]})
    emulator.publisher.close()
    emulator.publisher.close()
    entry = {"Source": "my.app", "DetailType": "thing", "Detail": "{}"}
    emulator.client("events").put_events(Entries=[entry])
    assert emulator.publisher.drain(0)
    assert emulator.outcomes == []


@pytest.mark.slow
@pytest.mark.parametrize("error", [OSError("no worker"), OSError(), InvokerClosedError("closed")])
def test_an_invocation_that_fails_by_itself_is_an_outcome_unless_a_shutdown_ended_it(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failed: Future[InvocationResult] = Future()
    failed.set_exception(error)
    monkeypatch.setattr(emulator.invoker, "invoke_async", lambda *_: failed)
    put_rule(emulator, {"Arn": emulator.create_function("def handler(event, context): pass")})
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    if isinstance(error, InvokerClosedError):
        assert not emulator.publisher.drain(0.05)
        assert (delivered.ids, emulator.outcomes) == ([], [])
    else:
        assert delivered.wait(1) == ["e1"]
        assert [(each.succeeded, each.answer) for each in emulator.outcomes] == [(False, str(error) or "OSError")]
