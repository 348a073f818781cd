"""Invocation of Lambda functions: synchronous, or queued with retries."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import tenacity

from container_runtime.runtime import EngineUnavailableError
from emulator.exceptions import InvokerClosedError, TooManyInvocationsError, WorkerStartError
from emulator.faults import FAULTS
from emulator.lambda_functions.invocation import (
    Invocation,
    InvocationResult,
    build_exit,
    build_start_failure,
    build_timeout,
)
from emulator.lambda_functions.worker import WorkerSettings
from emulator.lambda_functions.worker_pool import WorkerPool
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.moto_services.functions.backend import Function

logger = logging.getLogger(__name__)
Outcome = TypeVar("Outcome")

# The longest wait of an asynchronous invocation while all workers are busy.
_ASYNC_PATIENCE_S = 3600.0


class FunctionInvoker:
    """Invokes functions. Thread safe.

    A worker runs one version of one function with one configuration. When the code or the configuration changes, the
    next invocation starts a new worker and the old one ends. Each concurrent invocation has its own worker.
    """

    def __init__(self, settings: WorkerSettings, *, idle_seconds: float = 300.0, max_workers: int = 10) -> None:
        """Remove the workers that an earlier process left behind. No worker is started.

        Args:
            settings: of the workers.
            idle_seconds: a worker is ended after it was idle for this time.
            max_workers: the maximum number of workers. Beyond it, invocations are throttled, as on AWS (status 429).

        Raises:
            ContainerRuntimeError, OSError: old workers cannot be removed, or the folder cannot be created.
        """
        self._pool = WorkerPool(settings, idle_seconds, max_workers)
        self._lock = threading.Lock()
        # By the function's ARN: the thread in which its asynchronous invocations run one after the other, and the last.
        self._lanes: dict[str, tuple[ThreadPoolExecutor, Future[Any]]] = {}
        self._closed = False
        self._closing = threading.Event()
        self._listener: Callable[[Function, bytes, InvocationResult, int], None] | None = None

    def invoke(
        self,
        function: Function,
        payload: bytes,
        *,
        client_context: str | None = None,
        with_log_tail: bool = False,
        wait_for_worker: float = 0.0,
        wait_for_engine: bool = False,
    ) -> InvocationResult:
        """Invoke a function and wait for its response (invocation type RequestResponse).

        Args:
            function: the function to run.
            payload: the JSON payload.
            client_context: decoded JSON text for the handler's context.
            with_log_tail: whether to wait for the log lines and return the last of them.
            wait_for_worker: the number of seconds to wait while all workers are busy.
            wait_for_engine: whether to raise WorkerStartError while the container engine is unavailable, because the
                caller retries. Otherwise, it is a failure of the function.

        Raises:
            TooManyInvocationsError: all workers are still busy after ``wait_for_worker``.
            InvokerClosedError: the emulator shuts down.
            WorkerStartError: the container engine is unavailable, and ``wait_for_engine`` is true.
        """
        invocation = Invocation(
            function.invoked_arn or function.arn, payload, float(function.timeout_s), client_context
        )
        FAULTS.wait("lambda")
        if FAULTS.strikes("lambda", "throttle"):
            raise TooManyInvocationsError("Rate exceeded. (Injected fault.)")
        if FAULTS.strikes("lambda", "timeout"):
            asked_for = build_timeout(invocation.request_id, invocation.timeout_s)
            return InvocationResult(invocation.request_id, asked_for.payload, "Unhandled", function.version)
        if FAULTS.strikes("lambda", "error"):
            asked_for = build_exit(invocation.request_id, 1)
            return InvocationResult(invocation.request_id, asked_for.payload, "Unhandled", function.version)
        try:
            worker = self._pool.acquire(function, wait_for_worker)
        except WorkerStartError as error:
            if wait_for_engine and isinstance(error.__cause__, EngineUnavailableError):
                raise
            logger.warning("No worker for the function %s could be started: %s", function.name, error)
            failure = build_start_failure(invocation.request_id, str(error))
            logs = LogGroups(function.account, function.region)
            logs.put(f"/aws/lambda/{function.name}", "start-failures", [(int(time.time() * 1000), failure.log)])
            return InvocationResult(invocation.request_id, failure.payload, "Unhandled", function.version)
        try:
            return worker.invoke(invocation, with_log_tail=with_log_tail)
        finally:
            self._pool.release(worker)

    def tell_ends(self, listener: Callable[[Function, bytes, InvocationResult, int], None]) -> None:
        """Set the function that is called after each asynchronous invocation.

        Args:
            listener: its arguments are the function, the payload, the result and the number of attempts.
        """
        self._listener = listener

    def invoke_async(self, function: Function, payload: bytes) -> Future[InvocationResult]:
        """Invoke a function without waiting (invocation type Event).

        The invocations of one function run one after the other, in order. A failed invocation is retried at once,
        whereas AWS waits one minute before the first retry and two before the second. By default there are two retries;
        the function's event invoke configuration can change this.

        Returns:
            A future of the last attempt's result. If the emulator shuts down first, the future is cancelled or raises
            InvokerClosedError.
        """
        with self._lock:
            if not self._closed:
                return self._submit(function, self._invoke_with_retries, function, payload)
        future: Future[InvocationResult] = Future()
        future.cancel()
        return future

    def warm(self, function: Function) -> None:
        """Start a worker in the background if the function has none, so that the next invocation is fast."""
        with self._lock:
            if not self._closed and not self._pool.has_worker(function):
                self._submit(function, self._pool.warm, function)

    def close(self) -> None:
        """End all workers and cancel waiting invocations. No container, process, thread or folder remains."""
        with self._lock:
            self._closed = True
        self._closing.set()
        for lane, _ in self._lanes.values():
            lane.shutdown(wait=False, cancel_futures=True)
        self._pool.close()
        for lane, _ in self._lanes.values():
            lane.shutdown()

    def _submit(self, function: Function, work: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """Queue work in the thread of a function. The caller must hold the lock."""
        if function.arn in self._lanes:
            lane, _ = self._lanes[function.arn]
        else:
            # A function may be deleted, or never be invoked again: threads without work end.
            for arn in [arn for arn, (_, last) in self._lanes.items() if last.done()]:
                self._lanes.pop(arn)[0].shutdown(wait=False)
            lane = ThreadPoolExecutor(1, thread_name_prefix="lambda-lane")
        future = lane.submit(work, *arguments)
        self._lanes[function.arn] = lane, future
        return future

    def _invoke_with_retries(self, function: Function, payload: bytes) -> InvocationResult:
        for attempt in range(1, function.async_retries + 2):
            result = self._invoke_patiently(function, payload)
            if result.function_error is None:
                break
            if self._closed:
                raise InvokerClosedError
            logger.warning(
                "The function %s failed (attempt %d of %d): %s. Its log group is /aws/lambda/%s.",
                function.name,
                attempt,
                function.async_retries + 1,
                result.error_text,
                function.name,
            )
        if self._listener is not None:
            self._listener(function, payload, result, attempt)
        return result

    def _invoke_patiently(self, function: Function, payload: bytes) -> InvocationResult:
        """Invoke a function, and repeat this for up to an hour while it is throttled or the engine is unavailable.

        These repetitions do not count as attempts. AWS keeps such an event for hours.
        """
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((TooManyInvocationsError, WorkerStartError)),
            stop=tenacity.stop_after_delay(_ASYNC_PATIENCE_S) | tenacity.stop_when_event_set(self._closing),
            wait=tenacity.wait_exponential(0.1, max=5.0),
            sleep=tenacity.sleep_using_event(self._closing),
            before_sleep=tenacity.before_sleep_log(logger, logging.WARNING),
            reraise=True,
        )
        return attempts(self.invoke, function, payload, wait_for_worker=_ASYNC_PATIENCE_S, wait_for_engine=True)
