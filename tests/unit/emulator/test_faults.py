"""Tests of fault injection: syntax and frequency."""

import pytest

from emulator.faults import Faults, InjectedFaultError, build_fault, parse_fault


def test_faults_are_read() -> None:
    scope, fault = parse_fault("s3:error=0.1,truncate=1,delay=200ms,times=5")
    assert (scope, fault.shares, fault.delay, fault.times) == ("s3", {"error": 0.1, "truncate": 1.0}, 0.2, 5)
    assert parse_fault("lambda:timeout=0.5,delay=2")[1].delay == 2.0
    assert build_fault("jobs", {"capacity": 1}).shares == {"capacity": 1.0}
    assert parse_fault("sagemaker:delay=1m")[1].delay == 60.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a service"),
        ("S3:error=1", "is not a service"),
        (
            "foo:error=1",
            "nor one of events, jobs, lambda: give one of these, or a service such as s3, sagemaker or sqs",
        ),
        ("sagemakr:error=1", "nor one of events, jobs, lambda: give sagemaker"),
        ("stepfunctions:error=1", "requests of stepfunctions are signed as states: give states"),
        ("s3", "no fault is given for s3: give s3:error=SHARE"),
        ("s3:times=1", "no fault is given for s3"),
        ("s3:error=2", "a share from 0 to 1"),
        ("s3:error=nan", "a share from 0 to 1"),
        ("s3:error", "a share from 0 to 1"),
        ("s3:capacity=1", "is not one of delay, error, times, truncate"),
        ("events:throttle=1", "is not one of delay, error, times"),
        ("jobs:error=1", "is not one of capacity, delay, interrupt, times"),
        ("s3:delay=1h", "a time such as 200ms"),
        ("s3:delay=-1s", "a time such as 200ms"),
        ("s3:error=1,times=-1", "give a whole number"),
    ],
)
def test_what_is_not_a_fault_is_reported(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_fault(text)


def test_shares_and_times_are_kept() -> None:
    faults = Faults()
    assert not faults.strikes("s3", "error")
    faults.set({"s3": build_fault("s3", {"error": 0.3}), "events": build_fault("events", {"error": 1, "times": 2})})
    struck = sum(faults.strikes("s3", "error") for _ in range(4000))
    assert 1000 < struck < 1400
    assert not faults.strikes("s3", "truncate")
    assert not faults.strikes("lambda", "timeout")
    for _ in range(2):
        with pytest.raises(InjectedFaultError):
            faults.check("events")
    faults.check("events")
    described = faults.describe()
    assert described["s3"]["struck"] == {"error": struck}
    assert (described["events"]["times"], described["events"]["struck"]) == (0, {"error": 2})
    faults.set({})
    assert faults.describe() == {}
