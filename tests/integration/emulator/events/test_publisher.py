import json
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.lambda_functions.invoker import FunctionInvoker
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator
from tests.waiting import wait_until

STATE_CHANGE = "SageMaker Training Job State Change"


def build_event(number: int = 1, **detail: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": f"00000000-0000-0000-0000-{number:012d}",
        "detail-type": STATE_CHANGE,
        "source": "aws.sagemaker",
        "account": ACCOUNT,
        "time": "2026-01-02T03:04:05Z",
        "region": REGION,
        "resources": [f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job"],
        "detail": {"TrainingJobName": "job", "TrainingJobStatus": "InProgress", "number": number, **detail},
    }


class Deliveries:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.ids: list[str] = []

    def __call__(self, event_id: str) -> None:
        with self._changed:
            self.ids.append(event_id)
            self._changed.notify_all()

    def wait(self, count: int, timeout: float = 400.0) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ids) >= count, timeout), self.ids
            return list(self.ids)


def put_rule(
    emulator: Emulator, *targets: dict[str, Any], name: str = "rule", pattern: Any = None, bus: str = "default"
) -> None:
    events = emulator.client("events")
    pattern = {"source": ["aws.sagemaker"]} if pattern is None else pattern
    events.put_rule(Name=name, EventPattern=json.dumps(pattern), EventBusName=bus)
    events.put_targets(
        Rule=name,
        EventBusName=bus,
        Targets=[{"Id": str(number), **target} for number, target in enumerate(targets)],
    )


def create_queue(emulator: Emulator, name: str = "queue") -> str:
    emulator.client("sqs").create_queue(QueueName=name)
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


def receive(emulator: Emulator, count: int = 1, name: str = "queue") -> list[Any]:
    sqs = emulator.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    bodies: list[Any] = []

    def poll() -> bool:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        bodies.extend(json.loads(message["Body"]) for message in answer.get("Messages", []))
        return len(bodies) >= count

    wait_until(poll, f"{count} messages in {name}")
    return bodies


@pytest.mark.slow
def test_function_gets_the_event_and_delivery_is_reported_when_it_has_ended(emulator: Emulator) -> None:
    sqs = emulator.client("sqs")
    called, go_on = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("called", "go-on"))
    arn = emulator.create_function(
        f"""
        import boto3
        def handler(event, context):
            sqs = boto3.client("sqs")
            sqs.send_message(QueueUrl={called!r}, MessageBody="true")
            while not sqs.receive_message(QueueUrl={go_on!r}, WaitTimeSeconds=1).get("Messages"):
                pass
            print(event)
        """,
        Timeout=60,
    )
    put_rule(emulator, {"Arn": arn})
    delivered = Deliveries()
    event = build_event()
    emulator.publisher.publish("e1", REGION, event, delivered)
    # That it is past this line shows that the publisher waits for no function: this one cannot end yet.
    assert receive(emulator, name="called") == [True]
    assert delivered.ids == []
    sqs.send_message(QueueUrl=go_on, MessageBody="true")
    assert delivered.wait(1) == ["e1"]
    wait_until(lambda: str(event) in emulator.log_text("fn"), "the event as it was published")


def test_queue_gets_events_in_order(emulator: Emulator) -> None:
    put_rule(emulator, {"Arn": create_queue(emulator)})
    delivered = Deliveries()
    events = [build_event(number) for number in range(20)]
    for event in events:
        emulator.publisher.publish(event["id"], REGION, event, delivered)
    assert delivered.wait(20) == [event["id"] for event in events]
    assert receive(emulator, 20) == events
    assert emulator.publisher.drain(60)


def test_event_that_is_published_again_reaches_only_the_targets_it_missed(emulator: Emulator) -> None:
    """After a restart: of three targets it is recorded that they have the event, and one has it without a record."""
    from dataclasses import asdict

    from emulator.events.outcomes import DeliveryOutcome

    bus = emulator.client("events").create_event_bus(Name="other")["EventBusArn"]
    put_rule(emulator, *({"Arn": create_queue(emulator, name)} for name in ("known", "unknown", "new")), {"Arn": bus})
    (rule,) = emulator.client("events").list_rules()["Rules"]
    put_rule(emulator, *({"Arn": create_queue(emulator, name)} for name in ("far", "far-new")), name="far", bus="other")
    (far,) = emulator.client("events").list_rules(EventBusName="other")["Rules"]
    event = build_event()
    queue = emulator.client("sqs").get_queue_url(QueueName="unknown")["QueueUrl"]
    emulator.client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(event))
    known = [
        DeliveryOutcome(event["id"], ACCOUNT, arn, number, target, succeeded=True)
        for arn, number, target in (
            (rule["Arn"], "0", "arn:of:known"),
            (rule["Arn"], "3", bus),
            (far["Arn"], "0", "arn"),
        )
    ]
    emulator.publisher.expect_again({event["id"]: [asdict(each) for each in known]})
    emulator.publisher.expect_again({"of another account": []})
    delivered = Deliveries()
    emulator.publisher.publish(event["id"], REGION, event, delivered)
    assert delivered.wait(1) == [event["id"]]
    sqs = emulator.client("sqs")
    counts = {
        name: sqs.get_queue_attributes(
            QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]["ApproximateNumberOfMessages"]
        for name in ("known", "unknown", "new", "far", "far-new")
    }
    assert counts == {"known": "0", "unknown": "1", "new": "1", "far": "0", "far-new": "1"}


def test_event_without_a_rule_is_delivered_to_nobody(emulator: Emulator) -> None:
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]


def test_input_of_each_target(emulator: Emulator) -> None:
    queues = {name: create_queue(emulator, name) for name in ("constant", "path", "template")}
    put_rule(
        emulator,
        {"Arn": queues["constant"], "Input": '{"fixed": 1}'},
        {"Arn": queues["path"], "InputPath": "$.detail.TrainingJobName"},
        {
            "Arn": queues["template"],
            "InputTransformer": {"InputPathsMap": {"job": "$.detail.TrainingJobName"}, "InputTemplate": '{"j": <job>}'},
        },
    )
    emulator.publisher.publish("e1", REGION, build_event(), Deliveries())
    assert receive(emulator, name="constant") == [{"fixed": 1}]
    assert receive(emulator, name="path") == ["job"]
    assert receive(emulator, name="template") == [{"j": "job"}]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ({"detail": {"DebugRuleEvaluationStatuses": {"RuleEvaluationStatus": ["IssuesFound"]}}}, True),
        (
            {"detail": {"Debug": [{"exists": False}], "DebugRuleEvaluationStatuses": {"RuleConfigurationName": ["b"]}}},
            True,
        ),
        # Both fields have to be of one and the same element.
        (
            {
                "detail": {
                    "DebugRuleEvaluationStatuses": {
                        "RuleConfigurationName": ["a"],
                        "RuleEvaluationStatus": ["IssuesFound"],
                    }
                }
            },
            False,
        ),
        ({"detail": {"$or": [{"DebugRuleEvaluationStatuses": {"RuleConfigurationName": ["b"]}}, {"x": [1]}]}}, True),
        ({"detail": {"DebugRuleEvaluationStatuses": {"RuleEvaluationStatus": ["Error"]}}}, False),
        ({"detail": {"TrainingJobName": [{"prefix": "jo"}], "number": [{"numeric": [">", 0]}]}}, True),
        ({"source": ["aws.s3"]}, False),
    ],
)
def test_patterns(emulator: Emulator, pattern: dict[str, Any], matches: bool) -> None:
    from emulator.moto_services.eventbridge.rules import matching_targets

    put_rule(emulator, {"Arn": create_queue(emulator)}, pattern=pattern)
    statuses = [
        {"RuleConfigurationName": "a", "RuleEvaluationStatus": "NoIssuesFound"},
        {"RuleConfigurationName": "b", "RuleEvaluationStatus": "IssuesFound"},
    ]
    found = matching_targets(ACCOUNT, REGION, "default", build_event(DebugRuleEvaluationStatuses=statuses))
    assert bool(found) is matches


def test_disabled_rules_and_schedules_get_nothing(emulator: Emulator) -> None:
    from emulator.moto_services.eventbridge.rules import matching_targets

    events = emulator.client("events")
    put_rule(emulator, {"Arn": create_queue(emulator)})
    events.put_rule(Name="hourly", ScheduleExpression="rate(1 hour)")
    events.put_targets(Rule="hourly", Targets=[{"Id": "0", "Arn": create_queue(emulator)}])
    assert len(matching_targets(ACCOUNT, REGION, "default", build_event())) == 1
    events.disable_rule(Name="rule")
    assert matching_targets(ACCOUNT, REGION, "default", build_event()) == []
    assert matching_targets(ACCOUNT, REGION, "no-such-bus", build_event()) == []


def test_log_group_archive_and_topic(emulator: Emulator) -> None:
    events, sns, logs = (emulator.client(name) for name in ("events", "sns", "logs"))
    topic = sns.create_topic(Name="topic")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=create_queue(emulator))
    logs.create_log_group(logGroupName="/aws/events/all")
    put_rule(emulator, {"Arn": topic}, {"Arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/events/all"})
    events.create_archive(ArchiveName="kept", EventSourceArn=f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default")
    delivered = Deliveries()
    event = build_event()
    emulator.publisher.publish("e1", REGION, event, delivered)
    delivered.wait(1)
    assert json.loads(receive(emulator)[0]["Message"]) == event
    stream = logs.describe_log_streams(logGroupName="/aws/events/all")["logStreams"][0]["logStreamName"]
    written = logs.get_log_events(logGroupName="/aws/events/all", logStreamName=stream)["events"]
    assert [json.loads(line["message"]) for line in written] == [event]
    archive = events.describe_archive(ArchiveName="kept")
    assert archive["EventCount"] == 1
    # All that was kept is sent once more.
    events.start_replay(
        ReplayName="again",
        EventSourceArn=archive["ArchiveArn"],
        EventStartTime=datetime(2000, 1, 1, tzinfo=UTC),
        EventEndTime=datetime(2100, 1, 1, tzinfo=UTC),
        Destination={"Arn": archive["EventSourceArn"]},
    )
    replayed = json.loads(receive(emulator)[0]["Message"])
    assert replayed["detail"] == event["detail"]
    assert replayed["replay-name"] == "again"


def test_event_is_forwarded_to_another_bus_but_not_in_circles(
    emulator: Emulator, caplog: pytest.LogCaptureFixture
) -> None:
    bus = emulator.client("events").create_event_bus(Name="second")["EventBusArn"]
    put_rule(emulator, {"Arn": bus})
    default = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/default"
    put_rule(emulator, {"Arn": create_queue(emulator)}, {"Arn": default}, bus="second")
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(), delivered)
    assert delivered.wait(1) == ["e1"]
    # It is on the default bus, the second, and again, five times in all.
    assert receive(emulator, 2) == [build_event()] * 2
    assert "was forwarded by 5 buses" in caplog.text


def test_users_events_reach_functions(emulator: Emulator) -> None:
    arn = emulator.create_function("import json\ndef handler(event, context): print(json.dumps(event))")
    put_rule(emulator, {"Arn": arn}, pattern={"source": ["my.app"]})
    entry = {"Source": "my.app", "DetailType": "thing", "Detail": '{"a": {"b": 1}}', "Resources": ["r"]}
    answer = emulator.client("events").put_events(Entries=[entry, {**entry, "Source": "other.app"}])
    assert answer["FailedEntryCount"] == 0

    def read_seen() -> list[Any]:
        return [json.loads(line) for line in emulator.log_text("fn").splitlines() if line.startswith("{")]

    seen = wait_until(read_seen, "the function ran")
    assert len(seen) == 1
    assert seen[0]["detail"] == {"a": {"b": 1}}
    assert seen[0]["detail-type"] == "thing"
    assert seen[0]["id"] == answer["Entries"][0]["EventId"]
    assert seen[0]["account"] == ACCOUNT
    assert seen[0]["resources"] == ["r"]
    time.strptime(seen[0]["time"], "%Y-%m-%dT%H:%M:%SZ")


def test_topic_and_bucket_call_functions(emulator: Emulator) -> None:
    arn = emulator.create_function("def handler(event, context): print(list(event['Records'][0]))")
    sns, s3 = emulator.client("sns"), emulator.client("s3")
    topic = sns.create_topic(Name="topic")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="lambda", Endpoint=arn)
    sns.publish(TopicArn=topic, Message="hello")
    wait_until(lambda: "'Sns'" in emulator.log_text("fn"), "SNS called the function")
    s3.create_bucket(Bucket="watched")
    s3.put_bucket_notification_configuration(
        Bucket="watched",
        NotificationConfiguration={
            "LambdaFunctionConfigurations": [{"LambdaFunctionArn": arn, "Events": ["s3:ObjectCreated:*"]}]
        },
    )
    s3.put_object(Bucket="watched", Key="k", Body=b"x")
    wait_until(lambda: "'s3'" in emulator.log_text("fn"), "S3 called the function")


def test_targets_that_are_gone_hold_up_nobody(emulator: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    def missing(service: str, resource: str) -> dict[str, Any]:
        return {"Arn": f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"}

    put_rule(
        emulator,
        missing("sqs", "nobody"),
        missing("lambda", "function:nobody"),
        missing("sns", "nobody"),
        missing("batch", "job-queue/nobody"),
        {"Arn": create_queue(emulator)},
    )
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(1), delivered)
    emulator.publisher.publish("e2", REGION, build_event(2), delivered)
    assert receive(emulator, 2) == [build_event(1), build_event(2)]
    assert sorted(delivered.wait(2)) == ["e1", "e2"]
    assert f"the queue arn:aws:sqs:{REGION}:{ACCOUNT}:nobody does not exist; create it" in caplog.text
    assert "Function not found: " in caplog.text
    assert f"the topic arn:aws:sns:{REGION}:{ACCOUNT}:nobody does not exist" in caplog.text
    assert "is of a kind that the emulator does not deliver to" in caplog.text


def test_target_that_comes_back_is_tried_again(emulator: Emulator) -> None:
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue"
    put_rule(emulator, {"Arn": arn})
    emulator.publisher._retry_seconds = 2.0
    emulator.publisher.publish("e1", REGION, build_event(), Deliveries())
    create_queue(emulator)
    assert receive(emulator) == [build_event()]


def test_failing_on_delivered_does_not_stop_the_next_event(emulator: Emulator) -> None:
    def fail(event_id: str) -> None:
        raise OSError(event_id)

    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(1), fail)
    emulator.publisher.publish("e2", REGION, build_event(2), delivered)
    assert delivered.wait(1) == ["e2"]


def test_what_a_shutdown_cuts_off_is_not_called_delivered(emulator: Emulator) -> None:
    arn = emulator.create_function("import time\ndef handler(e, c):\n    print('in')\n    time.sleep(60)", Timeout=60)
    put_rule(emulator, {"Arn": arn})
    delivered = Deliveries()
    emulator.publisher.publish("e1", REGION, build_event(1), delivered)
    emulator.publisher.publish("e2", REGION, build_event(2), delivered)
    wait_until(lambda: "in" in emulator.log_text("fn").splitlines(), "the function runs")
    assert not emulator.publisher.drain(0.01)
    emulator.publisher.close()
    emulator.invoker.close()
    assert delivered.ids == []


def test_function_is_warm_before_its_rule_fires(emulator: Emulator) -> None:
    arn = emulator.create_function("print('loaded')\ndef handler(e, c): print('called')")
    pattern = {
        "source": ["aws.sagemaker"],
        "detail": {"DebugRuleEvaluationStatuses": {"RuleEvaluationStatus": ["IssuesFound"]}},
    }
    put_rule(emulator, {"Arn": arn}, pattern=pattern)
    emulator.publisher.publish("e1", REGION, build_event(), Deliveries())

    def is_warm(invoker: FunctionInvoker) -> bool:
        return any(worker._api is not None and worker._api.ready_at for worker in invoker._pool._idle)

    wait_until(lambda: is_warm(emulator.invoker), "a worker waits")
    (warm,) = emulator.invoker._pool._idle
    delivered = Deliveries()
    statuses = [{"RuleConfigurationName": "r", "RuleEvaluationStatus": "IssuesFound"}]
    emulator.publisher.publish("e2", REGION, build_event(DebugRuleEvaluationStatuses=statuses), delivered)
    delivered.wait(1)
    assert emulator.invoker._pool._idle == [warm]
    wait_until(lambda: "called" in emulator.log_text("fn"), "it is logged")
    assert emulator.log_text("fn").count("loaded") == 1


def test_patterns_are_tried_and_refused_before_there_is_a_rule(emulator: Emulator) -> None:
    events = emulator.client("events")

    def try_pattern(pattern: Any) -> bool:
        answer = events.test_event_pattern(EventPattern=json.dumps(pattern), Event=json.dumps(build_event()))
        return bool(answer["Result"])

    assert try_pattern({"detail": {"number": [{"numeric": ["<", 2]}]}})
    assert try_pattern({"detail": {"number": [1.0]}})  # 1 and 1.0 are one number
    assert not try_pattern({"detail": {"number": [True]}})
    refused = {"detail": {"number": [{"about": 1}]}}
    said = "Event pattern is not valid. Reason: Unrecognized match type about"
    with pytest.raises(events.exceptions.InvalidEventPatternException, match=said):
        try_pattern(refused)
    with pytest.raises(events.exceptions.InvalidEventPatternException, match=said):
        events.put_rule(Name="rule", EventPattern=json.dumps(refused))
    assert events.list_rules()["Rules"] == []


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"Input": "{}", "InputPath": "$.detail"}, "Only one of Input, InputPath, InputTransformer can be given"),
        ({"Input": "{"}, "The Input of the target 0 is not JSON"),
    ],
)
def test_a_target_has_one_input_which_is_json(emulator: Emulator, inputs: dict[str, str], text: str) -> None:
    events = emulator.client("events")
    with pytest.raises(ClientError, match=text) as refused:
        put_rule(emulator, {"Arn": create_queue(emulator), **inputs})
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert events.list_targets_by_rule(Rule="rule")["Targets"] == []


def test_a_rule_has_five_targets_at_most(emulator: Emulator) -> None:
    events = emulator.client("events")
    arn = create_queue(emulator)
    put_rule(emulator, *[{"Arn": arn}] * 5)
    with pytest.raises(events.exceptions.LimitExceededException, match="at most 5 targets a rule"):
        events.put_targets(Rule="rule", Targets=[{"Id": "sixth", "Arn": arn}])
    # One that is there is replaced, and one that was removed makes way for another.
    events.put_targets(Rule="rule", Targets=[{"Id": "4", "Arn": arn, "Input": "{}"}])
    events.remove_targets(Rule="rule", Ids=["0"])
    events.put_targets(Rule="rule", Targets=[{"Id": "sixth", "Arn": arn}])
    listed = events.list_targets_by_rule(Rule="rule")["Targets"]
    assert sorted(target["Id"] for target in listed) == ["1", "2", "3", "4", "sixth"]
    with pytest.raises(events.exceptions.LimitExceededException):
        put_rule(emulator, *[{"Arn": arn}] * 6, name="other")


@pytest.mark.parametrize("region", ["nowhere-1", ""])
def test_a_target_in_no_region_costs_no_other_target_the_event(emulator: Emulator, region: str) -> None:
    nowhere = f"arn:aws:lambda:{region}:{ACCOUNT}:function:fn"
    put_rule(emulator, {"Arn": nowhere, "RetryPolicy": {"MaximumRetryAttempts": 0}}, name="nowhere")
    put_rule(emulator, {"Arn": create_queue(emulator)})
    event = build_event()
    emulator.publisher.publish("e1", REGION, event, Deliveries())
    assert receive(emulator) == [event]
    assert emulator.publisher.drain(60)
