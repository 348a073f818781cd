"""Tests of job run threads: lookup, start and end.

Jobs that are only just being stored are included.
"""

from threading import Event, Thread

import pytest

from emulator.exceptions import InternalFailure
from emulator.jobs.runs.threads import RunThreads
from tests.waiting import wait_until


class Run:
    """Goes on until it is stopped."""

    def __init__(self, arn: str = "arn") -> None:
        self.arn = self.name = arn
        self.stopped = Event()

    def drive(self) -> None:
        assert self.stopped.wait(60)

    def ask_stop(self, grace_seconds: float) -> None:
        self.stopped.set()

    def shut_down(self, grace_seconds: float) -> None:
        self.stopped.set()


def test_a_run_is_found_while_its_job_is_stored() -> None:
    threads, run = RunThreads(), Run()

    def keep() -> None:
        with threads.lock:
            assert threads.find("arn") is run
            run.ask_stop(0.0)

    threads.start(run, keep)
    threads.wait_for_end("arn")


def test_a_job_that_is_not_stored_has_no_run_and_takes_none_away() -> None:
    threads, first, second = RunThreads(), Run(), Run()

    def refuse() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        threads.start(first, refuse)
    assert threads.find("arn") is None
    threads.start(first)
    with pytest.raises(KeyError):
        threads.start(second, refuse)
    assert threads.find("arn") is first
    threads.close(0.0)


def test_of_two_that_want_one_name_the_second_waits_for_what_becomes_of_the_first() -> None:
    threads, first, second, go = RunThreads(), Run(), Run(), Event()
    stored: list[Run] = []

    def keep_first() -> None:
        assert go.wait(60)
        stored.append(first)

    def keep_second() -> None:
        assert stored == [first]
        raise KeyError

    def start_second() -> None:
        with pytest.raises(KeyError):
            threads.start(second, keep_second)

    both = [Thread(target=threads.start, args=(first, keep_first)), Thread(target=start_second)]
    both[0].start()
    wait_until(lambda: threads.find("arn") is first)
    both[1].start()
    go.set()
    for thread in both:
        thread.join()
    assert threads.find("arn") is first
    threads.close(0.0)


def test_the_end_waits_for_a_job_that_is_being_stored_and_refuses_the_next() -> None:
    threads, run, go = RunThreads(), Run(), Event()
    storing = Thread(target=threads.start, args=(run, lambda: go.wait(60)))
    storing.start()
    wait_until(lambda: threads.find("arn") is run)
    closing = Thread(target=threads.close, args=(0.0,))
    closing.start()
    wait_until(lambda: threads.closing)
    assert not run.stopped.is_set()
    with pytest.raises(InternalFailure):
        threads.start(Run("other"), lambda: None)
    go.set()
    storing.join()
    closing.join()
    assert run.stopped.is_set()
    assert threads.list_names() == set()


def test_a_job_is_not_stored_if_no_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads, stored = RunThreads(), []
    monkeypatch.setattr(Thread, "start", refuse)
    with pytest.raises(InternalFailure, match="The job arn needs a thread"):
        threads.start(Run(), lambda: stored.append(1))
    with pytest.raises(InternalFailure, match="The job arn needs a thread"):
        threads.start(Run())
    assert (stored, threads.list_names()) == ([], set())


def test_a_run_whose_stop_cannot_be_stored_ends_and_so_do_the_others() -> None:
    class Unstorable(Run):
        def shut_down(self, grace_seconds: float) -> None:
            raise OSError("No space left on device")

    threads, runs = RunThreads(), [Unstorable("first"), Run("second")]
    for run in runs:
        threads.start(run)
    threads.close(0.0)
    assert all(run.stopped.is_set() for run in runs)


def test_no_thread_is_left_after_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run counts as ended a moment before its thread has returned: on a busy machine, a long one."""
    started: list[Thread] = []
    joined = Event()

    class SlowThread(Thread):
        def run(self) -> None:
            started.append(self)
            super().run()
            assert joined.wait(60)

        def join(self, timeout: float | None = None) -> None:
            joined.set()
            super().join(timeout)

    monkeypatch.setattr("emulator.jobs.runs.threads.Thread", SlowThread)
    threads = RunThreads()
    threads.start(Run("one"))
    threads.start(Run("two"), lambda: None)
    threads.close(0.0)
    assert len(started) == 2
    assert not any(thread.is_alive() for thread in started)
