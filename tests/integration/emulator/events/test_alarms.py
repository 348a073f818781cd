"""Tests of alarms on moto's metrics: states, events, topics and functions."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.events import alarms as alarms_module
from emulator.events.alarm_evaluation import judge_alarm
from emulator.events.alarms import Alarms
from tests.integration.emulator.events.test_publisher import create_queue, put_rule, receive
from tests.integration.emulator.small_emulator import ACCOUNT, REGION, Emulator
from tests.waiting import wait_until

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSIONS = [{"Name": "TrainingJobName", "Value": "job"}]
ALARM = {
    "AlarmName": "loss",
    "Namespace": NAMESPACE,
    "MetricName": "loss",
    "Dimensions": DIMENSIONS,
    "Statistic": "Maximum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 2.0,
    "ComparisonOperator": "GreaterThanThreshold",
}


@pytest.fixture
def alarms(emulator: Emulator) -> Iterator[Alarms]:
    running = Alarms(emulator.publisher)
    yield running
    running.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "alarms"]


def put(emulator: Emulator, value: float, **members: Any) -> None:
    datum = {"MetricName": "loss", "Dimensions": DIMENSIONS, "Value": value, **members}
    emulator.client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=[datum])


def describe(emulator: Emulator, name: str = "loss") -> dict[str, Any]:
    (found,) = emulator.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return dict(found)


def wait_for_state(emulator: Emulator, state: str, name: str = "loss") -> dict[str, Any]:
    wait_until(lambda: describe(emulator, name)["StateValue"] == state, lambda: describe(emulator, name))
    return describe(emulator, name)


@pytest.mark.slow
@pytest.mark.usefixtures("alarms")
def test_alarm_changes_its_state_and_tells_its_topic_its_function_and_the_bus(emulator: Emulator) -> None:
    cloudwatch, sns = emulator.client("cloudwatch"), emulator.client("sns")
    topic = sns.create_topic(Name="alarms")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=create_queue(emulator, "mails"))
    put_rule(emulator, {"Arn": create_queue(emulator)}, pattern={"detail-type": ["CloudWatch Alarm State Change"]})
    function = emulator.create_function(
        """
        import boto3, json
        def handler(event, context):
            boto3.client("sqs").send_message(
                QueueUrl=boto3.client("sqs").get_queue_url(QueueName="mails")["QueueUrl"],
                MessageBody=json.dumps(event),
            )
        """
    )
    cloudwatch.put_metric_alarm(**ALARM, AlarmActions=[topic, function], OKActions=[topic], AlarmDescription="too high")
    assert describe(emulator)["StateValue"] == "INSUFFICIENT_DATA"
    put(emulator, 1.0)
    wait_for_state(emulator, "OK")
    put(emulator, 9.0)
    changed = wait_for_state(emulator, "ALARM")
    assert changed["StateReason"].startswith("Threshold Crossed: 1 out of the last 1 datapoint [9.0 (")

    ok, alarm = receive(emulator, 2)
    assert [event["detail"]["state"]["value"] for event in (ok, alarm)] == ["OK", "ALARM"]
    assert alarm["detail"]["previousState"]["value"] == "OK"
    assert (alarm["source"], alarm["resources"]) == ("aws.cloudwatch", [changed["AlarmArn"]])
    assert alarm["detail"]["configuration"] == {
        "description": "too high",
        "metrics": [
            {
                "id": "m1",
                "metricStat": {
                    "metric": {"namespace": NAMESPACE, "name": "loss", "dimensions": {"TrainingJobName": "job"}},
                    "period": 60,
                    "stat": "Maximum",
                },
                "returnData": True,
            }
        ],
    }
    told = receive(emulator, 3, "mails")
    # A standard topic does not keep the order of its messages.
    mails = {mail["Subject"]: json.loads(mail["Message"]) for mail in told if "TopicArn" in mail}
    assert mails.keys() == {f'{state}: "loss" in US East (N. Virginia)' for state in ("OK", "ALARM")}
    message = mails['ALARM: "loss" in US East (N. Virginia)']
    assert (message["OldStateValue"], message["NewStateValue"]) == ("OK", "ALARM")
    assert message["Trigger"]["Dimensions"] == [{"name": "TrainingJobName", "value": "job"}]
    (call,) = [each for each in told if "alarmData" in each]
    assert (call["alarmArn"], call["accountId"], call["region"]) == (changed["AlarmArn"], ACCOUNT, REGION)
    assert call["alarmData"]["state"]["value"] == "ALARM"


@pytest.mark.usefixtures("alarms")
def test_alarm_is_evaluated_as_time_passes(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarms_module, "_HOLD_SECONDS", 0.5)
    cloudwatch = emulator.client("cloudwatch")
    cloudwatch.put_metric_alarm(**{**ALARM, "Period": 10, "TreatMissingData": "notBreaching"})
    wait_for_state(emulator, "OK")
    cloudwatch.set_alarm_state(AlarmName="loss", StateValue="ALARM", StateReason="to try it")
    assert "no datapoints were received" in wait_for_state(emulator, "OK")["StateReason"]


@pytest.mark.usefixtures("alarms")
def test_state_that_is_set_is_announced_and_put_alarms_keep_it(emulator: Emulator) -> None:
    cloudwatch = emulator.client("cloudwatch")
    put_rule(emulator, {"Arn": create_queue(emulator)}, pattern={"source": ["aws.cloudwatch"]})
    cloudwatch.put_metric_alarm(**ALARM)
    cloudwatch.set_alarm_state(AlarmName="loss", StateValue="ALARM", StateReason="to try it")
    (event,) = receive(emulator)
    assert event["detail"]["state"]["reason"] == "to try it"
    cloudwatch.put_metric_alarm(**{**ALARM, "Threshold": 3.0})
    assert (describe(emulator)["StateValue"], describe(emulator)["Threshold"]) == ("ALARM", 3.0)


@pytest.mark.usefixtures("alarms")
@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"Statistic": None, "ExtendedStatistic": "ptm"}, "The statistic 'ptm' is not computed"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "The comparison 'GreaterThanUpperThreshold' is not made"),
        ({"Expression": "ANOMALY_DETECTION_BAND(m1)"}, "The expression 'ANOMALY_DETECTION_BAND(m1)' of e1 is not"),
        ({"EvaluationPeriods": 1_000_000, "Period": 86_400}, "must be at most 604800 seconds"),
        ({"EvaluationPeriods": 1441}, "must be at most 86400 seconds"),
        ({"Expression": "m1 / unknown"}, "The expression 'm1 / unknown' of e1 is not"),
    ],
)
def test_alarm_that_could_not_be_evaluated_is_refused(emulator: Emulator, members: dict[str, Any], said: str) -> None:
    asked = {name: value for name, value in {**ALARM, **members}.items() if value is not None}
    if expression := asked.pop("Expression", None):
        metric = {"Namespace": NAMESPACE, "MetricName": "loss"}
        for name in ("Namespace", "MetricName", "Dimensions", "Statistic", "Period"):
            del asked[name]
        asked["Metrics"] = [
            {"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}, "ReturnData": False},
            {"Id": "e1", "Expression": expression},
        ]
    cloudwatch = emulator.client("cloudwatch")
    with pytest.raises(ClientError, match="ValidationError") as refused:
        cloudwatch.put_metric_alarm(**asked)
    assert said in str(refused.value)
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


@pytest.mark.usefixtures("alarms")
def test_an_alarm_that_cannot_be_evaluated_does_not_stop_the_others(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def judge_others(alarm: Any, *arguments: Any) -> Any:
        if alarm.name == "a-bad-one":
            raise ZeroDivisionError
        return judge_alarm(alarm, *arguments)

    monkeypatch.setattr(alarms_module, "judge_alarm", judge_others)
    emulator.client("cloudwatch").put_metric_alarm(**{**ALARM, "AlarmName": "a-bad-one"})
    emulator.client("cloudwatch").put_metric_alarm(**ALARM)
    put(emulator, 3.0)
    wait_for_state(emulator, "ALARM")
    assert describe(emulator, "a-bad-one")["StateValue"] == "INSUFFICIENT_DATA"
    assert "alarm:a-bad-one could not be evaluated" in caplog.text


@pytest.mark.usefixtures("alarms")
def test_statistics_of_no_sample_and_an_id_that_is_a_word_of_python(emulator: Emulator) -> None:
    metric = {"Namespace": NAMESPACE, "MetricName": "loss", "Dimensions": DIMENSIONS}
    query = {"Id": "in", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}, "ReturnData": True}
    members = ("AlarmName", "EvaluationPeriods", "Threshold", "ComparisonOperator")
    emulator.client("cloudwatch").put_metric_alarm(**{each: ALARM[each] for each in members}, Metrics=[query])
    nothing = {"SampleCount": 0, "Sum": 0, "Minimum": 0, "Maximum": 0}
    datum = {"MetricName": "loss", "Dimensions": DIMENSIONS, "StatisticValues": nothing}
    emulator.client("cloudwatch").put_metric_data(Namespace=NAMESPACE, MetricData=[datum])
    put(emulator, 3.0)
    wait_for_state(emulator, "ALARM")


@pytest.mark.usefixtures("alarms")
def test_alarm_on_an_expression(emulator: Emulator) -> None:
    metric = {"Namespace": NAMESPACE, "MetricName": "loss", "Dimensions": DIMENSIONS}
    queries = [
        {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": stat}, "ReturnData": False}
        for number, stat in enumerate(("Sum", "SampleCount"))
    ]
    put(emulator, 1.0)
    put(emulator, 3.0)
    emulator.client("cloudwatch").put_metric_alarm(
        AlarmName="mean",
        Metrics=[*queries, {"Id": "e1", "Expression": "m0 / m1"}],
        EvaluationPeriods=1,
        Threshold=4.0,
        ComparisonOperator="LessThanThreshold",
    )
    assert "[2.0 (" in wait_for_state(emulator, "ALARM", "mean")["StateReason"]


def list_composite(emulator: Emulator) -> dict[str, dict[str, Any]]:
    found = emulator.client("cloudwatch").describe_alarms(AlarmTypes=["CompositeAlarm"])
    assert found["MetricAlarms"] == []
    return {alarm["AlarmName"]: alarm for alarm in found["CompositeAlarms"]}


@pytest.mark.usefixtures("alarms")
def test_composite_alarms_follow_what_their_rules_name(emulator: Emulator) -> None:
    cloudwatch, sns = emulator.client("cloudwatch"), emulator.client("sns")
    topic = sns.create_topic(Name="alarms")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=create_queue(emulator, "mails"))
    cloudwatch.put_metric_alarm(**ALARM)
    cloudwatch.put_metric_alarm(**{**ALARM, "AlarmName": "low loss", "ComparisonOperator": "LessThanThreshold"})
    arn = describe(emulator)["AlarmArn"]
    # The first depends on the second, whatever order they are stored in.
    cloudwatch.put_composite_alarm(AlarmName="inner", AlarmRule="FALSE")
    cloudwatch.put_composite_alarm(
        AlarmName="outer", AlarmRule='ALARM(inner) AND NOT ALARM("low loss")', AlarmActions=[topic]
    )
    cloudwatch.put_composite_alarm(AlarmName="inner", AlarmRule=f'AT_LEAST(50%, ALARM, ({arn}, "low loss"))')
    # These depend on each other, and are left as they are.
    cloudwatch.put_composite_alarm(AlarmName="hen", AlarmRule="FALSE")
    cloudwatch.put_composite_alarm(AlarmName="egg", AlarmRule="NOT ALARM(hen)")
    cloudwatch.put_composite_alarm(AlarmName="hen", AlarmRule="ALARM(egg)")
    assert {alarm["AlarmName"] for alarm in cloudwatch.describe_alarms()["MetricAlarms"]} == {"loss", "low loss"}
    assert cloudwatch.describe_alarms()["CompositeAlarms"] == []

    put(emulator, 9.0)
    wait_until(lambda: list_composite(emulator)["outer"]["StateValue"] == "ALARM", lambda: list_composite(emulator))
    (told,) = receive(emulator, 1, "mails")
    mail = json.loads(told["Message"])
    inner = list_composite(emulator)["inner"]
    assert told["Subject"] == 'ALARM: "outer" in US East (N. Virginia)'
    assert (mail["NewStateValue"], mail["AlarmRule"]) == ("ALARM", 'ALARM(inner) AND NOT ALARM("low loss")')
    assert mail["NewStateReason"].startswith(f"{inner['AlarmArn']} transitioned to ALARM at ")
    (child,) = mail["TriggeringChildren"]
    assert (child["Arn"], child["State"]["Value"]) == (inner["AlarmArn"], "ALARM")
    assert "Trigger" not in mail

    # A state that is set by hand reaches those above it, too.
    cloudwatch.set_alarm_state(AlarmName="low loss", StateValue="ALARM", StateReason="to try it")
    wait_until(lambda: list_composite(emulator)["outer"]["StateValue"] == "OK", lambda: list_composite(emulator))
    for name in ("loss", "inner"):
        with pytest.raises(ClientError, match="there are composite alarm"):
            cloudwatch.delete_alarms(AlarmNames=[name])
    cloudwatch.delete_alarms(AlarmNames=["outer", "inner", "loss"])
    assert set(list_composite(emulator)) == {"hen", "egg"}


@pytest.mark.usefixtures("alarms")
@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"AlarmRule": "ALARM(loss"}, "Error in AlarmRule [Unexpected end at char 10]"),
        ({"AlarmRule": "()"}, "Error in AlarmRule [Unsupported token ')' at char 1]"),
        ({"AlarmRule": "ALARM(loss) ALARM(loss)"}, "Error in AlarmRule [Unsupported token 'ALARM' at char 12]"),
        ({"AlarmRule": "(" * 5000}, "its brackets are nested too deeply"),
        ({"AlarmRule": "ALARM(other)"}, "as alarms [other] in the alarm rule do not exist"),
        ({"AlarmRule": "TRUE", "ActionsSuppressor": "other"}, "ActionsSuppressor is not evaluated"),
    ],
)
def test_composite_alarm_that_could_not_be_evaluated_is_refused(
    emulator: Emulator, members: dict[str, str], said: str
) -> None:
    with pytest.raises(ClientError, match="ValidationError") as refused:
        emulator.client("cloudwatch").put_composite_alarm(AlarmName="both", **members)
    assert said in str(refused.value)
    assert list_composite(emulator) == {}
