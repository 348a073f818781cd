"""Job run threads: one for each job, found by its ARN, and stopped together."""

import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition, Event, RLock, Thread
from typing import Protocol
from weakref import WeakSet

from sqlalchemy.exc import DatabaseError

from emulator.exceptions import InternalFailure

logger = logging.getLogger(__name__)

# Time between two attempts to store a job's end while the store refuses writes.
_STORE_AGAIN_SECONDS = 1.0


class Run(Protocol):
    """Drives one job, rule evaluation or pipeline execution."""

    @property
    def arn(self) -> str:
        """The job's ARN."""

    @property
    def name(self) -> str:
        """The job's name."""

    def drive(self) -> None:
        """Drive the job from its current phase to its end, whatever fails."""

    def ask_stop(self, grace_seconds: float) -> None:
        """Stop the job without waiting for its end. Thread safe and idempotent."""

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the job is stopping and stop it, because the emulator shuts down."""


class RunThreads:
    """Starts one thread for each job run, finds runs by ARN, and waits for their ends. Thread safe.

    Attributes:
        lock: Hold it while looking up a run. A caller who holds it and finds a job stored as Stopping without a run
            can rely on there being nothing to stop. Hold it only for short writes to the store: the end of every run
            waits for it.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._ended = Condition(self.lock)
        self._closing = Event()
        self._runs: dict[str, Run] = {}
        # ARNs of jobs that are being stored; their runs are already in ``_runs``.
        self._starting: set[str] = set()
        self._threads: WeakSet[Thread] = WeakSet()

    @property
    def closing(self) -> bool:
        """Whether the emulator shuts down, so that no new job may start."""
        return self._closing.is_set()

    def start(self, run: Run, keep: Callable[[], object] | None = None) -> None:
        """Start ``run`` in its own thread.

        The run is registered before its job is stored, so that no stop is lost in between. The lock is not held while
        the job is stored, so that other jobs can be created at the same time.

        Args:
            run: The job run.
            keep: Stores the job, if it is new.

        Raises:
            InternalFailure: The job is new and the emulator is shutting down, or the system's limit of threads is
                reached.
            Exception: Any error of ``keep``; the run is not started then.
        """
        if keep is None:
            with self.lock:
                self._runs[run.arn] = run
            try:
                self._start_thread(run, lambda: self._drive(run))
            except InternalFailure:
                self._forget(run)
                raise
            return
        stored: Future[bool] = Future()
        # First the thread, which waits: a job that is stored without one would be InProgress until the next restart.
        self._start_thread(run, lambda: self._drive(run) if stored.result() else None)
        try:
            with self._storing(run):
                keep()
        except BaseException:
            stored.set_result(False)
            raise
        stored.set_result(True)

    @contextmanager
    def _storing(self, run: Run) -> Iterator[None]:
        with self._ended:
            self._ended.wait_for(lambda: run.arn not in self._starting)
            if self._closing.is_set():
                raise InternalFailure("The emulator is shutting down and starts no more jobs.")
            # If another run has this name, storing the job will raise the error.
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

    def find(self, arn: str) -> Run | None:
        """Return the active run of the job with this ARN, or None. Hold the lock while the answer has to stay true."""
        return self._runs.get(arn)

    def list_names(self) -> set[str]:
        """List the names of the jobs with active runs."""
        with self.lock:
            return {run.name for run in self._runs.values()}

    def wait_for_end(self, arn: str) -> None:
        """Wait until the job with this ARN has no active run."""
        with self._ended:
            self._ended.wait_for(lambda: arn not in self._runs)

    def wait_for_news(self, seconds: float) -> None:
        """Wait until any run has ended, for at most ``seconds``."""
        with self._ended:
            self._ended.wait(seconds)

    def stop(self, find_arns: Callable[[], Collection[str]], grace_seconds: float) -> None:
        """Stop the runs of the jobs that ``find_arns`` returns, and wait for their ends.

        ``find_arns`` is called again afterwards, because these jobs may have created others.
        """
        while True:
            wanted = find_arns()
            with self.lock:
                runs = [run for arn, run in self._runs.items() if arn in wanted]
                for run in runs:
                    _shut_down(run, grace_seconds)
            if not runs:
                return
            for run in runs:
                self.wait_for_end(run.arn)

    def store_at_last(self, store: Callable[[], object]) -> None:
        """Repeat ``store`` until it succeeds, or the emulator shuts down.

        A full disk has space again after the files of this or another run are removed.
        """
        while True:
            try:
                store()
            except (OSError, DatabaseError):
                # The cause was logged at the first failure.
                if self._closing.wait(_STORE_AGAIN_SECONDS):
                    logger.exception("It could not be stored until the emulator ended")
                    return
            else:
                return

    def close(self, grace_seconds: float) -> None:
        """Stop every run with ``grace_seconds`` between SIGTERM and SIGKILL, and wait until all have ended."""
        with self._ended:
            self._closing.set()
            self._ended.wait_for(lambda: not self._starting)
            for run in self._runs.values():
                _shut_down(run, grace_seconds)
            # No run is added from here on: new jobs are refused, and a stopping training job starts no rules.
            self._ended.wait_for(lambda: not self._runs)
            threads = list(self._threads)
        for thread in threads:
            thread.join()  # each has forgotten its run and has only to return, unless it was refused

    def _drive(self, run: Run) -> None:
        try:
            run.drive()
        finally:
            self._forget(run)

    def _forget(self, run: Run) -> None:
        with self._ended:
            del self._runs[run.arn]
            self._ended.notify_all()

    def _start_thread(self, run: Run, drive: Callable[[], object]) -> None:
        """Start a run's thread. Not under a lock: on a busy machine this can take long.

        Raises:
            InternalFailure: The system's limit of threads is reached.
        """
        thread = Thread(target=drive, name=f"run-{run.name}")
        try:
            thread.start()
        except RuntimeError as error:
            raise InternalFailure(
                f"The job {run.name} needs a thread, and the system starts no more of them ({error}). Wait until other "
                "jobs have ended, or raise the limit (`ulimit -u`, a container's pids limit)."
            ) from error
        with self.lock:
            self._threads.add(thread)


def _shut_down(run: Run, grace_seconds: float) -> None:
    """Have a run end, even if that cannot be stored: the other runs must end, too."""
    try:
        run.shut_down(grace_seconds)
    except Exception:
        logger.exception("It could not be stored that %s is stopping", run.name)
        run.ask_stop(grace_seconds)
