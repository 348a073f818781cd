"""Tests of the fence, with a clock of the test's."""

from threading import Thread

import pytest

from emulator.state.fence import Fence


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fence(clock: Clock) -> Fence:
    return Fence(10.0, clock)


def test_it_is_open_for_some_seconds_from_when_the_renewal_was_sent(fence: Fence, clock: Clock) -> None:
    assert not fence.is_open
    fence.extend(95.0)
    assert fence.is_open
    fence.extend(93.0)  # an answer that comes late
    clock.now = 104.9
    assert fence.is_open
    clock.now = 105.0
    assert not fence.is_open


def test_a_waiting_thread_continues_when_it_is_renewed(
    fence: Fence, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    threads = [Thread(target=fence.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[0].join(0.5)
    assert all(thread.is_alive() for thread in threads)
    fence.extend(clock.now)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert [record.message.split(",")[0].split(":")[0] for record in caplog.records] == [
        "The other S3 has not been reached for 10 s",
        "The lease is renewed",
    ]
    fence.wait()  # at once


def test_at_a_stop_nobody_waits(fence: Fence, clock: Clock) -> None:
    class EndedError(Exception):
        pass

    def end() -> None:
        raise EndedError

    fence.end_instead(end)
    with pytest.raises(EndedError):
        fence.wait()
    fence.extend(clock.now)
    fence.wait()
