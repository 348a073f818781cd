"""Tests of pauses between attempts on failing storage.

A pause fits the time that a failed attempt cost.
"""

import pytest

from smdebug.storage.outage import ObjectStoreError, Outage


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def fail(outage: Outage, clock: Clock, seconds: float) -> None:
    def call() -> None:
        with outage.watched("write s3://b/k"):
            clock.now += seconds
            raise ObjectStoreError("S3 does not answer")

    with pytest.raises(ObjectStoreError, match="does not answer"):
        call()


def test_after_a_failure_no_call_is_let_through_for_four_times_as_long(clock: Clock) -> None:
    outage = Outage(clock)
    fail(outage, clock, 30)
    for passed in (0.0, 60.0, 59.0):
        clock.now += passed
        with (
            pytest.raises(ObjectStoreError, match=r"Did not write s3://b/k.*next attempt"),
            outage.watched("write s3://b/k"),
        ):
            raise AssertionError("let through")
    clock.now += 1.0
    with outage.watched("write s3://b/k"):
        pass


def test_what_succeeds_ends_the_outage(clock: Clock) -> None:
    outage = Outage(clock)
    fail(outage, clock, 1)
    clock.now += 4
    let_through = []
    for number in range(2):
        with outage.watched("write s3://b/k"):
            let_through.append(number)
    assert let_through == [0, 1]


def test_forgotten_the_next_call_is_let_through_and_counts(clock: Clock) -> None:
    outage = Outage(clock)
    fail(outage, clock, 10)
    outage.forget()
    fail(outage, clock, 10)
    with pytest.raises(ObjectStoreError, match=r"in 40\.0 s"), outage.watched("write s3://b/k"):
        pass


def test_other_errors_are_no_outage(clock: Clock) -> None:
    outage = Outage(clock)
    with pytest.raises(ValueError, match="a defect"), outage.watched("write s3://b/k"):
        raise ValueError("a defect")
    with outage.watched("write s3://b/k"):
        pass
