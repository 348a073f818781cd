"""The threads of the jobs that run now: one for each run, found by its job's ARN, and all of them ended together."""

from __future__ import annotations

import logging
from threading import Condition, Event, RLock, Thread
from typing import TYPE_CHECKING, Protocol

from sqlalchemy.exc import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

logger = logging.getLogger(__name__)

# Between two attempts to store how something ended, while the store takes nothing.
_STORE_AGAIN_SECONDS = 1.0


class Run(Protocol):
    """The life of one job: ``runs.training`` and ``runs.rule`` have one each."""

    arn: str
    name: str

    def live(self) -> None:
        """Drive the job from where it is to its end, whatever goes wrong."""

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""


class RunThreads:
    """Starts the threads, knows what each drives, and waits for their ends. Thread safe.

    Attributes:
        lock: held over storing a job and starting its run, and over looking a run up: whoever finds a job stored as
            Stopping without a run knows that there is nothing to stop.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._ended = Condition(self.lock)
        self._closing = Event()
        self._runs: dict[str, Run] = {}

    @property
    def closing(self) -> bool:
        """Whether the emulator ends, and nothing more may start."""
        return self._closing.is_set()

    def start(self, run: Run) -> None:
        """Drive ``run`` in a thread of its own."""
        with self.lock:
            self.register(run)
        self.begin(run)

    def register(self, run: Run) -> None:
        """Let ``run`` be found, and be waited for; hold the lock, and let ``begin`` follow when it is given back.

        A thread takes its time to begin where many want the processor, and nobody else should wait for it.
        """
        self._runs[run.arn] = run

    def begin(self, run: Run) -> None:
        """Drive a run that was registered in a thread of its own."""
        try:
            Thread(target=self._drive, args=(run,), name=f"run-{run.name}").start()
        except RuntimeError:  # the system gives no more threads
            self._forget(run)
            raise

    def find(self, arn: str) -> Run | None:
        """Find the run of the job with this ARN, None when none goes on; hold the lock as long as that matters."""
        return self._runs.get(arn)

    def list_names(self) -> set[str]:
        """List the names of the jobs whose runs go on."""
        with self.lock:
            return {run.name for run in self._runs.values()}

    def wait_for_end(self, arn: str) -> None:
        """Return when no run of the job with this ARN goes on."""
        with self._ended:
            self._ended.wait_for(lambda: arn not in self._runs)

    def wait_for_news(self, seconds: float) -> None:
        """Return when any run has ended, or so many seconds are over."""
        with self._ended:
            self._ended.wait(seconds)

    def stop(self, find_arns: Callable[[], Collection[str]], grace_seconds: float) -> None:
        """Stop the runs of the jobs that ``find_arns`` names; return when none of them goes on, nor one they made."""
        while True:
            wanted = find_arns()
            with self.lock:
                runs = [run for arn, run in self._runs.items() if arn in wanted]
                for run in runs:
                    run.shut_down(grace_seconds)
            if not runs:
                return
            for run in runs:
                self.wait_for_end(run.arn)

    def store_at_last(self, store: Callable[[], object]) -> None:
        """Store an end that the store refused: a disk has room again when the run's files, or another's, are gone."""
        while True:
            try:
                store()
            except (OSError, DatabaseError):
                # What is wrong was said when it was refused first.
                if self._closing.wait(_STORE_AGAIN_SECONDS):
                    logger.exception("It could not be stored until the emulator ended")
                    return
            else:
                return

    def close(self, grace_seconds: float) -> None:
        """Stop every run, give it so long between SIGTERM and SIGKILL, and return when all have ended."""
        with self._ended:
            self._closing.set()
            for run in self._runs.values():
                run.shut_down(grace_seconds)
            # None is added any more: new jobs are refused, and a training that was asked to stop starts no rules.
            self._ended.wait_for(lambda: not self._runs)

    def _drive(self, run: Run) -> None:
        try:
            run.live()
        finally:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        with self._ended:
            del self._runs[run.arn]
            self._ended.notify_all()
