import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from emulator.gateway import starting_service
from emulator.gateway.starting_service import StartingService
from tests.waiting import wait_until


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> StartingService[str]:
    monkeypatch.setattr(starting_service, "_EARLY_SECONDS", 60.0)
    return StartingService()


def refuse_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Condition, "wait", lambda *_: pytest.fail("the start waited"))


def test_the_start_continues_when_early_requests_are_answered(service: StartingService[str]) -> None:
    entered, may_answer, steps = threading.Event(), threading.Event(), list[str]()

    def answer() -> None:
        with service.use(60) as started:
            entered.set()
            may_answer.wait(60)
            steps.append(f"answered by {started}")

    def start() -> None:
        service.set_result("moto")
        service.answer_early()
        steps.append("went on")

    with ThreadPoolExecutor() as threads:
        request = threads.submit(answer)
        wait_until(lambda: service._early)
        assert not request.done()
        starting = threads.submit(start)
        assert entered.wait(60)
        assert not starting.done()
        may_answer.set()
    assert steps == ["answered by moto", "went on"]


def test_later_requests_and_those_of_other_services_keep_no_start_waiting(
    service: StartingService[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service.set_result("moto")
    refuse_waits(monkeypatch)
    with service.use(60):
        service.answer_early()  # not even this one: it came after the start
    StartingService[str]().answer_early()


def test_an_early_request_that_does_not_end_keeps_the_start_waiting_for_half_a_second_only() -> None:
    service: StartingService[str] = StartingService()
    with ThreadPoolExecutor() as threads:
        over = threading.Event()

        def answer() -> None:
            with service.use(60):
                over.wait(60)

        threads.submit(answer)
        wait_until(lambda: service._early)
        service.set_result("moto")
        service.answer_early()
        assert service._early
        over.set()


def test_requests_end_with_an_emulator_that_stops_or_does_not_start(
    service: StartingService[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TimeoutError), service.use(0.01):
        pass
    service.cancel()
    with pytest.raises(CancelledError), service.use(60):
        pass
    refuse_waits(monkeypatch)
    service.answer_early()
