"""Invokes Lambda functions: at once for whoever waits, or in order and with retries for whoever does not."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from emulator.exceptions import InvokerClosedError, WorkerStartError
from emulator.lambda_functions.invocation import Invocation, InvocationResult, build_start_failure
from emulator.lambda_functions.lane import Lane
from emulator.lambda_functions.worker import WorkerSettings
from emulator.lambda_functions.worker_pool import WorkerPool
from emulator.moto_services.logs import LogGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from container_runtime.runtime import ContainerRuntime
    from emulator.lambda_functions.worker_log import LogSink
    from emulator.moto_services.functions import Function

logger = logging.getLogger(__name__)

LABEL_ROLE = "smdebug-emulator.role"
LABEL_STATE = "smdebug-emulator.state"
_ROLE = "lambda-worker"
# How long an asynchronous invocation waits while all workers are busy.
_ASYNC_PATIENCE_S = 3600.0


class FunctionInvoker:
    """Invokes functions. Thread safe.

    A worker serves one version of one function with one configuration; when the code or the configuration changes, the
    next invocation gets a new worker and the old one ends. Concurrent invocations get a worker each.
    """

    def __init__(
        self,
        container_runtime: ContainerRuntime,
        endpoint_url: str,
        work_dir: Path,
        credentials: Mapping[str, str],
        *,
        idle_seconds: float = 300.0,
        max_workers: int = 10,
        log_sink: Callable[[str, str], LogSink] = LogGroups,
    ) -> None:
        """Remove what an earlier run left behind; start nothing yet.

        Args:
            container_runtime: runs the workers.
            endpoint_url: the emulator as a worker reaches it: ``http://<container_runtime.host_address>:<port>``.
            work_dir: a folder that belongs to this object alone; what is in it is deleted.
            credentials: what functions sign with.
            idle_seconds: a worker that was not needed for so long is ended.
            max_workers: how many may run at once; AWS throttles at its own limit (error 429) in the same way.
            log_sink: the log groups of an account and a region.

        Raises:
            ContainerRuntimeError, OSError: what was left behind cannot be removed, or the folder cannot be made.
        """
        labels = {LABEL_ROLE: _ROLE, LABEL_STATE: hashlib.sha256(str(work_dir.resolve()).encode()).hexdigest()[:32]}
        settings = WorkerSettings(container_runtime, endpoint_url, work_dir, credentials, labels, log_sink)
        self._log_sink = log_sink
        self._pool = WorkerPool(settings, idle_seconds, max_workers)
        self._lock = threading.Lock()
        self._lanes: dict[str, Lane] = {}
        self._closed = False

    def invoke(
        self,
        function: Function,
        payload: bytes,
        *,
        client_context: str | None = None,
        with_log_tail: bool = False,
        wait_for_worker: float = 0.0,
    ) -> InvocationResult:
        """Invoke and wait for the answer (invocation type RequestResponse).

        Args:
            function: what to run.
            payload: JSON.
            client_context: decoded JSON text for the handler's context.
            with_log_tail: wait until the log lines have come, and return the last of them.
            wait_for_worker: seconds to wait while all workers are busy.

        Raises:
            TooManyInvocationsError, InvokerClosedError.
        """
        invocation = Invocation(function.arn, payload, float(function.timeout_s), client_context)
        try:
            worker = self._pool.acquire(function, wait_for_worker)
        except WorkerStartError as error:
            logger.warning("No worker for the function %s could be started: %s", function.name, error)
            failure = build_start_failure(invocation.request_id, str(error))
            self._log_start_failure(function, failure.log)
            return InvocationResult(invocation.request_id, failure.payload, "Unhandled", function.version)
        try:
            return worker.invoke(invocation, with_log_tail=with_log_tail)
        finally:
            self._pool.release(worker)

    def invoke_async(self, function: Function, payload: bytes) -> Future[InvocationResult]:
        """Invoke without waiting (invocation type Event).

        The invocations of one function run one after the other, in order. One that fails is tried again at once, twice
        unless the function's event invoke configuration says otherwise; AWS waits one minute, then two, in between.

        Returns:
            The last attempt's result. When the emulator shuts down first it is cancelled, or raises InvokerClosedError.
        """
        future: Future[InvocationResult] = Future()
        if not self._enqueue(function, payload, future):
            future.cancel()
        return future

    def warm(self, function: Function) -> None:
        """Start a worker in the background if there is none, so that the next invocation finds it ready."""
        if not self._pool.has_worker(function):
            self._enqueue(function, None, Future())

    def close(self) -> None:
        """End every worker; what still waits is cancelled. Leaves no container, process, thread or folder."""
        with self._lock:
            self._closed = True
            lanes = list(self._lanes.values())
        for lane in lanes:
            lane.cancel()
        self._pool.close()
        for lane in lanes:
            lane.join()

    def _enqueue(self, function: Function, payload: bytes | None, future: Future[InvocationResult]) -> bool:
        with self._lock:
            if self._closed:
                return False
            lane = self._lanes.get(function.arn)
            if lane is None:
                lane = self._lanes[function.arn] = Lane(self._serve, lambda: self._drop_lane(function.arn))
            elif payload is None:
                return True  # what the lane has to do starts a worker anyway
            lane.add(function, payload, future)
            return True

    def _drop_lane(self, arn: str) -> bool:
        """Forget a lane that has nothing more to do; False if it got something meanwhile."""
        with self._lock:
            if self._lanes[arn].has_work():
                return False
            del self._lanes[arn]
            return True

    def _serve(self, function: Function, payload: bytes | None, future: Future[InvocationResult]) -> None:
        """Do one entry of a lane; a payload of None only warms up."""
        if payload is None:
            try:
                self._pool.warm(function)
            except Exception:
                # The invocation that warming was for meets the same error and reports it; the lane has to outlive it.
                logger.exception(
                    "No worker of the function %s could be started ahead of its first event", function.name
                )
        elif future.set_running_or_notify_cancel():
            try:
                result = self._invoke_with_retries(function, payload)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever holds the future
                future.set_exception(error)
            else:
                future.set_result(result)

    def _invoke_with_retries(self, function: Function, payload: bytes) -> InvocationResult:
        attempt = 0
        while True:
            attempt += 1
            result = self.invoke(function, payload, wait_for_worker=_ASYNC_PATIENCE_S)
            if result.function_error is None:
                return result
            if self._closed:
                raise InvokerClosedError
            logger.warning(
                "The function %s failed (attempt %d of %d): %s. Its log group is /aws/lambda/%s.",
                function.name,
                attempt,
                function.async_retries + 1,
                _error_message(result.payload),
                function.name,
            )
            if attempt > function.async_retries:
                return result

    def _log_start_failure(self, function: Function, text: str) -> None:
        sink = self._log_sink(function.account, function.region)
        sink.put(f"/aws/lambda/{function.name}", "start-failures", [(int(time.time() * 1000), text)])


def _error_message(payload: bytes) -> str:
    try:
        error = json.loads(payload)
    except ValueError:
        return payload[:500].decode(errors="replace")
    return f"{error.get('errorType')}: {error.get('errorMessage')}" if isinstance(error, dict) else str(error)
