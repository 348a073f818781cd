"""Job run threads: one for each job, found by its ARN, and stopped together."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from threading import Condition, Event, RLock, Thread
from typing import TYPE_CHECKING, Protocol

from sqlalchemy.exc import DatabaseError

from emulator.exceptions import InternalFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

logger = logging.getLogger(__name__)

# Between two attempts to store how something ended, while the store takes nothing.
_STORE_AGAIN_SECONDS = 1.0


class Run(Protocol):
    """What drives one job, pipeline execution or rule evaluation."""

    @property
    def arn(self) -> str:
        """The job's ARN."""

    @property
    def name(self) -> str:
        """The job's name."""

    def live(self) -> None:
        """Drive the job from where it is to its end, whatever goes wrong."""

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop what runs; returns at once. Any thread may call it, more than once."""

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and ask it to, because the emulator ends."""


class RunThreads:
    """Starts the threads, knows what each drives, and waits for their ends. Thread safe.

    Attributes:
        lock: held over looking a run up: whoever finds a job stored as Stopping without a run knows that there is
            nothing to stop. Nobody who holds it writes to the store for long: every run's end waits for it.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._ended = Condition(self.lock)
        self._closing = Event()
        self._runs: dict[str, Run] = {}
        # Those whose jobs are being stored; they are in ``_runs``, too.
        self._starting: set[str] = set()

    @property
    def closing(self) -> bool:
        """Whether the emulator ends, and nothing more may start."""
        return self._closing.is_set()

    def start(self, run: Run, keep: Callable[[], object] | None = None) -> None:
        """Drive ``run`` in a thread of its own, after ``keep`` has stored its job where that is new.

        The run is found before its job is stored, so that no stop is lost in between. Nobody else waits meanwhile:
        where many jobs are created, each waits for the store alone.

        Raises:
            InternalFailure: the emulator is closing, and the job is new.
            Exception: whatever ``keep`` raises; there is no run then.
        """
        if keep is None:
            with self.lock:
                self._runs[run.arn] = run
        else:
            with self._storing(run):
                keep()
        self._begin(run)

    @contextmanager
    def _storing(self, run: Run) -> Iterator[None]:
        with self._ended:
            self._ended.wait_for(lambda: run.arn not in self._starting)
            if self._closing.is_set():
                raise InternalFailure("The emulator is shutting down and starts no more jobs.")
            # A run that goes on has the name, and who stores the job will say so.
            before = self._runs.get(run.arn)
            self._starting.add(run.arn)
            self._runs[run.arn] = before or run
        stored = False
        try:
            yield
            stored = True
        finally:
            with self._ended:
                self._starting.discard(run.arn)
                if stored:
                    self._runs[run.arn] = run
                elif self._runs.get(run.arn) is run:
                    del self._runs[run.arn]
                self._ended.notify_all()

    def _begin(self, run: Run) -> None:
        # A thread takes its time to begin where many want the processor: nobody waits for it with the lock.
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
            self._ended.wait_for(lambda: not self._starting)
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
