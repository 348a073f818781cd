"""Pool of warm workers: lent to invocations, ended when idle."""

import logging
import shutil
import threading
import time

from emulator.exceptions import InvokerClosedError, TooManyInvocationsError, WorkerStartError
from emulator.lambda_functions.worker import Worker, WorkerSettings
from emulator.moto_services.functions.backend import Function

logger = logging.getLogger(__name__)


class WorkerPool:
    """The idle and busy workers of all function versions. Thread safe."""

    def __init__(self, settings: WorkerSettings, idle_seconds: float, max_workers: int) -> None:
        """Remove the workers and folders that an earlier process left behind. No worker is started."""
        self._settings = settings
        self._idle_seconds = idle_seconds
        self._max_workers = max_workers
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._starting: list[Function] = []
        self._closed = False
        self._remove_leftovers()
        self._reaper = threading.Thread(target=self._end_idle_workers, name="lambda-reaper", daemon=True)
        self._reaper.start()

    def acquire(self, function: Function, timeout: float) -> Worker:
        """Take an idle worker of ``function``, or start one.

        Args:
            function: the function version.
            timeout: the number of seconds to wait while all workers are busy.

        Raises:
            TooManyInvocationsError: all workers are still busy after ``timeout``.
            InvokerClosedError: the pool was closed.
            WorkerStartError: the worker cannot be started.
        """
        deadline = time.monotonic() + timeout
        unneeded: list[Worker] = []
        try:
            with self._changed:
                worker = self._reserve(function, deadline, unneeded)
        finally:
            for old in unneeded:
                old.close()
        return worker if worker is not None else self._start(function)

    def release(self, worker: Worker) -> None:
        """Return a worker to the pool. A worker that cannot be reused is ended."""
        with self._changed:
            keep = worker.usable and not self._closed
            if keep:
                self._busy.discard(worker)
                worker.idle_since = time.monotonic()
                self._idle.append(worker)
                self._changed.notify_all()
        if not keep:
            worker.close()
            with self._changed:
                self._busy.discard(worker)
                self._changed.notify_all()

    def has_worker(self, function: Function) -> bool:
        """Return whether there is a usable worker with exactly this version and configuration."""
        with self._changed:
            return any(worker.function == function and worker.usable for worker in (*self._idle, *self._busy))

    def warm(self, function: Function) -> None:
        """Start an idle worker, unless there is a worker. Errors are only logged: the next invocation raises them."""
        try:
            if not self.has_worker(function):
                self.release(self.acquire(function, 0.0))
        except InvokerClosedError:
            return
        except (WorkerStartError, TooManyInvocationsError) as error:
            logger.warning("The function %s could not be warmed up: %s", function.name, error)
        except Exception:
            # No caller waits for this, so it is only logged.
            logger.exception("The function %s could not be warmed up", function.name)

    def close(self) -> None:
        """End all workers, including busy ones. No container, process, thread or folder remains."""
        with self._changed:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._changed.notify_all()
        for worker in workers:
            worker.close()
        self._reaper.join()
        with self._changed:
            if not self._changed.wait_for(lambda: not self._busy and not self._starting, 30.0):
                logger.error("Lambda workers are still busy 30 s after they were ended.")
        shutil.rmtree(self._settings.work_dir, ignore_errors=True)

    def _reserve(self, function: Function, deadline: float, unneeded: list[Worker]) -> Worker | None:
        """Take an idle worker, or reserve a slot for a new one and return None. The caller must hold the lock.

        Workers that the caller must close are added to ``unneeded``.
        """
        while True:
            if self._closed:
                raise InvokerClosedError
            is_free = self._has_reserved(function)
            worker = self._take_idle(function, unneeded) if is_free else None
            if worker is not None:
                self._busy.add(worker)
                return worker
            if is_free and len(self._idle) + len(self._busy) + len(self._starting) < self._max_workers:
                self._starting.append(function)
                return None
            if is_free and self._idle:
                # The worker that was idle for the longest time is ended.
                unneeded.append(self._idle.pop(0))
            elif not self._changed.wait(max(0.0, deadline - time.monotonic())):
                if not is_free:
                    raise TooManyInvocationsError(
                        f"Rate Exceeded. The function {function.name} has a reserved concurrency of "
                        f"{function.reserved_concurrency}."
                    )
                raise TooManyInvocationsError(
                    f"All {self._max_workers} Lambda workers are busy: try again, or invoke fewer at a time."
                )

    def _has_reserved(self, function: Function) -> bool:
        """Return whether the function's reserved concurrency, which its versions share, allows another invocation."""
        if function.reserved_concurrency is None:
            return True
        running = [*(worker.function for worker in self._busy), *self._starting]
        name = (function.account, function.region, function.name)
        count = sum((each.account, each.region, each.name) == name for each in running)
        return count < function.reserved_concurrency

    def _take_idle(self, function: Function, unneeded: list[Worker]) -> Worker | None:
        """Take the most recently used idle worker of the function; outdated workers are added to ``unneeded``."""
        own = [worker for worker in self._idle if worker.function.arn == function.arn]
        current = [worker for worker in own if worker.usable and worker.function == function]
        unneeded += [worker for worker in own if worker not in current]
        self._idle = [worker for worker in self._idle if worker not in (*unneeded, *current[-1:])]
        return current[-1] if current else None

    def _start(self, function: Function) -> Worker:
        worker = Worker(self._settings, function)
        started = False
        try:
            worker.start()
            started = True
        finally:
            if not started:
                worker.close()
            with self._changed:
                self._starting.remove(function)
                if started:
                    self._busy.add(worker)
                closed = self._closed
                self._changed.notify_all()
        if closed:
            # close() missed this worker.
            self.release(worker)
            raise InvokerClosedError
        return worker

    def _end_idle_workers(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                ended = [
                    worker
                    for worker in self._idle
                    if not worker.usable or now - worker.idle_since >= self._idle_seconds
                ]
                self._idle = [worker for worker in self._idle if worker not in ended]
                if not ended:
                    if self._closed:
                        return
                    oldest = min((worker.idle_since for worker in self._idle), default=now)
                    self._changed.wait(max(0.01, oldest + self._idle_seconds - now))
            for worker in ended:
                worker.close()

    def _remove_leftovers(self) -> None:
        container_runtime, work_dir = self._settings.container_runtime, self._settings.work_dir
        for container in container_runtime.find(self._settings.labels):
            logger.info("Removing the Lambda worker %s that an earlier run left behind.", container.name)
            container_runtime.stop(container.id, 0.0)
            container_runtime.remove(container.id)
        shutil.rmtree(work_dir, ignore_errors=True)
        work_dir.mkdir(parents=True, mode=0o755)
