"""Tests of the request queue: admission and order."""

from threading import Event, Thread

import pytest

from emulator.gateway.request_queue import RequestQueue
from tests.waiting import wait_until


def test_one_at_a_time_whoever_came_first() -> None:
    turns, order, inside = RequestQueue(600), list[int](), list[int]()

    def ask(number: int) -> None:
        with turns.take():
            inside.append(number)
            order.append(number)
            assert inside == [number]
            inside.remove(number)

    threads = [Thread(target=ask, args=(number,)) for number in range(20)]
    with turns.take():
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda number=number: len(turns._waiting) == number + 1)  # type: ignore[misc]
        assert order == []
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_a_failing_request_passes_the_turn_on() -> None:
    turns = RequestQueue(600)
    with pytest.raises(KeyError), turns.take():
        raise KeyError
    with turns.take():
        pass


def test_a_request_that_waited_too_long_proceeds() -> None:
    turns, let_go = RequestQueue(0.01), Event()

    def hold() -> None:
        with turns.take():
            held.set()
            let_go.wait(60)

    held, thread = Event(), Thread(target=hold)
    thread.start()
    held.wait()
    try:
        with turns.take():
            assert thread.is_alive()
    finally:
        let_go.set()
        thread.join()
    patient = RequestQueue(600)
    with patient.take():
        pass
    with turns.take():
        assert not turns._waiting
