"""Tests of messages between services: topics, rules, buckets, alarms, queues."""

import json
from typing import Any

import pytest

from tests.contract.like_moto_server.servers import MOTO_SERVER, Departure, Server, read_error
from tests.waiting import wait_until


class Queue:
    def __init__(self, server: Server, name: str, **attributes: str) -> None:
        self._sqs = server.client("sqs")
        self.url = self._sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        found = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        self.arn = found["Attributes"]["QueueArn"]

    def receive(self) -> list[Any]:
        """Take the messages that are there, each as the JSON that it is."""
        return [json.loads(each["Body"]) for each in self.receive_raw()]

    def receive_raw(self) -> list[Any]:
        answer = self._sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for each in answer.get("Messages", []):
            self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return list(answer.get("Messages", []))


@pytest.fixture
def queue(server: Server, name: str) -> Queue:
    return Queue(server, name)


def make_topic(server: Server, name: str) -> str:
    return str(server.client("sns").create_topic(Name=name)["TopicArn"])


def test_a_topic_delivers_an_envelope(server: Server, name: str, queue: Queue) -> None:
    sns, topic = server.client("sns"), make_topic(server, name)
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, ReturnSubscriptionArn=True)
    published = sns.publish(TopicArn=topic, Message="hello", Subject="greeting")
    (envelope,) = wait_until(queue.receive)
    found = {key: envelope[key] for key in ("Type", "MessageId", "TopicArn", "Subject", "Message")}
    assert found == {
        "Type": "Notification",
        "MessageId": published["MessageId"],
        "TopicArn": topic,
        "Subject": "greeting",
        "Message": "hello",
    }
    sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
    assert sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []


def test_raw_delivery_and_a_filter_policy(server: Server, name: str, queue: Queue) -> None:
    sns, topic = server.client("sns"), make_topic(server, name)
    attributes = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"kind": ["wanted"]})}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, Attributes=attributes)
    for kind in ("other", "wanted"):
        attribute = {"kind": {"DataType": "String", "StringValue": kind}}
        sns.publish(TopicArn=topic, Message=kind, MessageAttributes=attribute)
    (message,) = wait_until(queue.receive_raw)
    assert message["Body"] == "wanted"
    assert message["MessageAttributes"]["kind"]["StringValue"] == "wanted"


def test_a_message_received_too_often_goes_to_the_dead_letter_queue(server: Server, name: str) -> None:
    dead = Queue(server, f"{name}-dead")
    policy = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}
    queue = Queue(server, name, RedrivePolicy=json.dumps(policy), VisibilityTimeout="0")
    sqs = server.client("sqs")
    sqs.send_message(QueueUrl=queue.url, MessageBody='"poison"')
    assert len(sqs.receive_message(QueueUrl=queue.url)["Messages"]) == 1
    assert "Messages" not in sqs.receive_message(QueueUrl=queue.url)
    assert wait_until(dead.receive) == ["poison"]


def test_a_fifo_queue_drops_duplicates_and_keeps_order(server: Server, name: str) -> None:
    queue = Queue(server, f"{name}.fifo", FifoQueue="true")
    for body, identity in (("1", "a"), ("1", "a"), ("2", "b")):
        server.client("sqs").send_message(
            QueueUrl=queue.url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=identity
        )
    assert queue.receive() == [1, 2]


def test_a_rule_sends_what_its_pattern_matches(server: Server, name: str, queue: Queue) -> None:
    events = server.client("events")
    pattern = {"source": [name], "detail": {"size": [{"numeric": [">", 10]}]}}
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    paths = {"InputPathsMap": {"size": "$.detail.size"}, "InputTemplate": '{"seen": <size>}'}
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": queue.arn, "InputTransformer": paths}])
    entries = [{"Source": name, "DetailType": "d", "Detail": json.dumps({"size": size})} for size in (5, 50)]
    assert events.put_events(Entries=entries)["FailedEntryCount"] == 0
    assert wait_until(queue.receive) == [{"seen": 50}]


def test_a_rule_is_disabled_and_cannot_be_deleted_with_targets(server: Server, name: str, queue: Queue) -> None:
    events = server.client("events")
    events.put_rule(Name=name, EventPattern=json.dumps({"source": [name]}))
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": queue.arn}])
    events.disable_rule(Name=name)
    assert events.describe_rule(Name=name)["State"] == "DISABLED"
    assert read_error(events.delete_rule, Name=name) == "ValidationException"
    events.remove_targets(Rule=name, Ids=["1"])
    events.delete_rule(Name=name)
    assert read_error(events.describe_rule, Name=name) == "ResourceNotFoundException"


@pytest.mark.parametrize("pattern", ['{"source": "not a list"}', "not JSON"])
def test_a_pattern_that_is_none_is_refused(server: Server, name: str, pattern: str) -> None:
    found = read_error(server.client("events").put_rule, Name=name, EventPattern=pattern)
    assert found == "InvalidEventPatternException"


def test_a_bucket_tells_a_queue_of_its_objects(server: Server, bucket: str, queue: Queue) -> None:
    s3 = server.client("s3")
    wanted = {"Key": {"FilterRules": [{"Name": "suffix", "Value": ".csv"}]}}
    configuration = {"QueueArn": queue.arn, "Events": ["s3:ObjectCreated:*"], "Filter": wanted}
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [configuration]}
    )
    for key in ("in.csv", "in.txt"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"1,2")

    def receive_records() -> list[Any]:
        return [record for body in queue.receive() for record in body.get("Records", [])]

    (record,) = wait_until(receive_records)
    assert (record["eventName"], record["s3"]["object"]["key"]) == ("ObjectCreated:Put", "in.csv")


def test_an_alarm_is_described_and_set(server: Server, name: str, queue: Queue) -> None:
    cloudwatch, sns, topic = server.client("cloudwatch"), server.client("sns"), make_topic(server, name)
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        Namespace=name,
        MetricName="loss",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=5,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[topic],
        Tags=[{"Key": "team", "Value": "red"}],
    )
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"] == [{"Key": "team", "Value": "red"}]
    source = "Amazon CloudWatch API Reference: PutMetricAlarm"
    server.expect(alarm["StateValue"], "INSUFFICIENT_DATA", Departure(MOTO_SERVER, "OK", source))

    cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="try")
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[name], StateValue="ALARM")["MetricAlarms"]
    assert alarm["StateReason"] == "try"
    source = "Amazon CloudWatch API Reference: SetAlarmState"
    if server.name != MOTO_SERVER:
        wait_until(lambda: count_messages(server, queue) == 1, "the alarm's message")
    server.expect(count_messages(server, queue), 1, Departure(MOTO_SERVER, 0, source))

    cloudwatch.delete_alarms(AlarmNames=[name])
    assert cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"] == []


def count_messages(server: Server, queue: Queue) -> int:
    answer = server.client("sqs").get_queue_attributes(
        QueueUrl=queue.url, AttributeNames=["ApproximateNumberOfMessages"]
    )
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def test_statistics_of_a_metric(server: Server, name: str) -> None:
    cloudwatch = server.client("cloudwatch")
    data = [{"MetricName": "loss", "Value": value, "Timestamp": 1_800_000_000} for value in (1.0, 3.0)]
    cloudwatch.put_metric_data(Namespace=name, MetricData=data)
    (point,) = cloudwatch.get_metric_statistics(
        Namespace=name,
        MetricName="loss",
        StartTime=1_799_999_940,
        EndTime=1_800_000_060,
        Period=60,
        Statistics=["Average", "Sum", "SampleCount"],
    )["Datapoints"]
    assert (point["Average"], point["Sum"], point["SampleCount"]) == (2, 4, 2)
    listed = [each["MetricName"] for each in cloudwatch.list_metrics(Namespace=name)["Metrics"]]
    source = "Amazon CloudWatch API Reference: ListMetrics"
    server.expect(listed, ["loss"], Departure(MOTO_SERVER, ["loss", "loss"], source))
