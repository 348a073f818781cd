"""Tests of the bucket lease: one emulator holds it at a time."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from emulator.exceptions import StartupError
from emulator.state.replica import lease as lease_module
from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.lease import FENCE_SECONDS, LEASE_SECONDS, Holder, Lease, LeaseLostError, build_holder
from tests.integration.emulator.state.replica.memory_bucket import MemoryBucket, MemoryStore


@pytest.fixture
def bucket() -> Bucket:
    """One in memory; test_bucket.py has what an S3 answers."""
    return MemoryBucket(MemoryStore())


def build(folder: str, **members: object) -> Holder:
    """A holder on another machine, whose processes nobody here knows."""
    return replace(build_holder(folder, Path("/state")), machine="another", **members)  # type: ignore[arg-type]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a lease that is not free fail the test, instead of becoming free with time."""
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(sleep=lambda _: pytest.fail("the lease was waited for")))


def test_a_bucket_that_is_written_is_refused_and_the_message_says_by_whom(bucket: Bucket) -> None:
    first, done = Lease(bucket, build("a", host="heron", pid=17)), Event()
    first.take()

    def renew() -> None:
        while not done.wait(0.1):
            first.renew()

    thread = Thread(target=renew)
    thread.start()
    try:
        with pytest.raises(StartupError, match=r"written by the emulator on heron \(process 17, .*/state\) since 20"):
            Lease(bucket, build("b")).take()
    finally:
        done.set()
        thread.join()


@pytest.mark.usefixtures("no_pauses")
def test_a_lease_that_was_given_back_is_free(bucket: Bucket) -> None:
    first = Lease(bucket, build("a"))
    first.take()
    first.release()
    Lease(bucket, build("b")).take()


def test_a_lease_that_nobody_renews_is_taken_and_the_one_before_it_is_lost(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "LEASE_SECONDS", 1.0)
    first, second = Lease(bucket, build("a")), Lease(bucket, build("b", host="egret"))
    first.take()
    second.take()
    with pytest.raises(LeaseLostError, match="the emulator on egret"):
        first.renew()
    first.release()  # which is another's by now
    second.renew()


def test_a_renewal_whose_answer_is_lost_is_its_own(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, replace_object = Lease(bucket, build("a")), bucket.replace
    lease.take()

    def replace_without_answer(key: str, content: bytes, etag: str) -> str | None:
        replace_object(key, content, etag)
        raise BucketError("the connection was cut")

    monkeypatch.setattr(bucket, "replace", replace_without_answer)
    with pytest.raises(BucketError):
        lease.renew()
    monkeypatch.undo()
    lease.renew()
    lease.renew()


def test_the_fence_is_open_while_nobody_else_can_have_the_lease(bucket: Bucket) -> None:
    lease = Lease(bucket, build("a"))
    assert not lease.fence.is_open
    lease.take()
    assert lease.fence.is_open
    assert FENCE_SECONDS < LEASE_SECONDS


@pytest.mark.usefixtures("no_pauses")
def test_a_process_of_this_machine_that_has_ended_is_not_waited_for(bucket: Bucket) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    Lease(bucket, replace(build_holder("a", Path("/a")), pid=ended.pid)).take()
    Lease(bucket, build_holder("b", Path("/b"))).take()
