import pytest

from emulator.events.alarm_evaluation import judge_alarm
from emulator.moto_services.cloudwatch.alarms import Alarm, MetricStat, Sample

STAT = MetricStat("N", "loss", {}, 60, "Average", None)
ALARM = Alarm(
    account="123456789012",
    region="us-east-1",
    name="alarm",
    arn="arn:aws:cloudwatch:us-east-1:123456789012:alarm:alarm",
    description=None,
    rule=None,
    stats={"m1": STAT},
    expressions={},
    watched="m1",
    evaluation_periods=3,
    datapoints_to_alarm=3,
    threshold=0.5,
    comparison="GreaterThanThreshold",
    treat_missing_data="missing",
    actions_enabled=True,
    actions={},
    state="OK",
    reason="",
    reason_data="{}",
    updated_ms=0,
)
NOW_MS = 1_700_000_000_000


def samples(points: str, key: str = "m1") -> dict[str, list[Sample]]:
    """One period a character, the oldest first: ``0`` and ``X`` have data below and above the threshold, ``-`` none."""
    values = {"0": 0.0, "X": 1.0}
    return {
        key: [
            Sample(NOW_MS - 60_000 * (len(points) - position) + 1, 1.0, *[values[point]] * 3)
            for position, point in enumerate(points)
            if point != "-"
        ]
    }


# As CloudWatch's documentation tabulates them, for 3 out of 3 and for 2 out of 3 data points.
@pytest.mark.parametrize(
    ("needed", "points", "missing", "ignore", "breaching", "not_breaching"),
    [
        (3, "0-X-X", "OK", "OK", "OK", "OK"),
        (3, "0----", "OK", "OK", "OK", "OK"),
        (3, "-----", "INSUFFICIENT_DATA", None, "ALARM", "OK"),
        (3, "0XX-X", "ALARM", "ALARM", "ALARM", "ALARM"),
        (3, "--X--", "ALARM", None, "ALARM", "OK"),
        (2, "0-X-X", "ALARM", "ALARM", "ALARM", "ALARM"),
        (2, "00X0X", "ALARM", "ALARM", "ALARM", "ALARM"),
        (2, "0-X--", "OK", "OK", "ALARM", "OK"),
        (2, "----0", "OK", "OK", "ALARM", "OK"),
        (2, "---X-", "ALARM", None, "ALARM", "OK"),
    ],
)
def test_missing_data_are_treated_as_documented(
    needed: int, points: str, missing: str, ignore: str | None, breaching: str, not_breaching: str
) -> None:
    states = {}
    for treatment in ("missing", "ignore", "breaching", "notBreaching"):
        alarm = ALARM._replace(datapoints_to_alarm=needed, treat_missing_data=treatment)
        judgement = judge_alarm(alarm, samples(points), NOW_MS)
        states[treatment] = judgement and judgement.state
    assert list(states.values()) == [missing, ignore, breaching, not_breaching]


@pytest.mark.parametrize(
    ("comparison", "threshold", "state"),
    [
        ("GreaterThanThreshold", 1.0, "OK"),
        ("GreaterThanOrEqualToThreshold", 1.0, "ALARM"),
        ("LessThanThreshold", 1.0, "OK"),
        ("LessThanOrEqualToThreshold", 1.0, "ALARM"),
    ],
)
def test_comparison(comparison: str, threshold: float, state: str) -> None:
    alarm = ALARM._replace(evaluation_periods=1, datapoints_to_alarm=1, comparison=comparison, threshold=threshold)
    judgement = judge_alarm(alarm, samples("X"), NOW_MS)
    assert judgement is not None
    assert judgement.state == state


def test_reasons_say_what_was_seen() -> None:
    alarm = ALARM._replace(evaluation_periods=2, datapoints_to_alarm=1)
    judgement = judge_alarm(alarm, samples("0X"), NOW_MS)
    assert judgement is not None
    assert judgement.reason == (
        "Threshold Crossed: 1 out of the last 2 datapoints [1.0 (14/11/23 22:12:20)] was greater than the threshold "
        "(0.5) (minimum 1 datapoint for OK -> ALARM transition)."
    )
    judgement = judge_alarm(alarm._replace(treat_missing_data="breaching"), {"m1": []}, NOW_MS)
    assert judgement is not None
    assert judgement.reason == (
        "Threshold Crossed: no datapoints were received for 2 periods and 2 missing datapoints were treated as "
        "[Breaching]."
    )


def test_expression_of_two_metrics() -> None:
    alarm = ALARM._replace(
        stats={"a": STAT, "b": STAT._replace(stat="Sum")},
        expressions={"ratio": "-(a - 3) / b * 2"},
        watched="ratio",
        evaluation_periods=1,
        datapoints_to_alarm=1,
        threshold=3.9,
    )
    both = samples("X", "a") | samples("X", "b")
    judgement = judge_alarm(alarm, both, NOW_MS)
    assert judgement is not None
    assert (judgement.state, "[4.0 (" in judgement.reason) == ("ALARM", True)
    for lacking in (samples("X", "a") | {"b": []}, samples("X", "a") | samples("0", "b")):
        judgement = judge_alarm(alarm, lacking, NOW_MS)
        assert judgement is not None
        assert judgement.state == "INSUFFICIENT_DATA", "nothing to divide by"
