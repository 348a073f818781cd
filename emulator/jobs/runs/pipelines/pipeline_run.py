"""Pipeline run: the steps of one execution, which are clients of the API."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from emulator.jobs.model.pipeline_execution import PipelineExecution
from emulator.jobs.runs.pipelines.pipeline_references import References
from emulator.jobs.runs.pipelines.pipeline_steps import build_step_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.services import Services
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_LONGEST_SECONDS = 28 * 86_400
# A function runs for up to 15 minutes.
_LONGEST_CALL_SECONDS = 960


class PipelineRun:
    """The run of one execution. Its own thread calls ``drive``; other threads may ask it to stop.

    Attributes:
        execution: The execution as last stored by this run.
        shutting_down: Whether it stops because the emulator ends.
    """

    def __init__(self, execution: PipelineExecution, services: Services) -> None:
        """Prepare a run, of a new execution or of one that ran before a restart."""
        self.arn, self.name = execution.arn, execution.name
        self.execution = execution
        self.shutting_down = False
        self._services = services
        self._stop_asked = Event()
        if execution.status == "Stopping":
            self._stop_asked.set()
        self._steps = execution.planned
        self.connect = cache(lambda service: _connect(execution, services.settings, service))
        self.resolve = References(execution, self._describe, self.connect).resolve
        self._callers = ThreadPoolExecutor(thread_name_prefix=f"pipeline-{execution.name}")
        self._kinds = build_step_kinds(self, self._callers)

    @property
    def stopping(self) -> bool:
        """Whether the execution is to stop."""
        return self._stop_asked.is_set()

    def drive(self) -> None:
        """Drive the execution from where it is to its end."""
        try:
            self._run_steps()
            self._end()
        except Exception as error:
            logger.exception("The pipeline execution %s failed by a defect of the emulator", self.name)
            reason = f"InternalServerError: {type(error).__name__}: {error}."
            self._services.threads.store_at_last(lambda: self._change(lambda each, now_ms: each.fail(now_ms, reason)))
        finally:
            self._callers.shutdown(wait=False, cancel_futures=True)

    def _run_steps(self) -> None:
        """Start steps whose needs are met, until nothing runs and nothing more can."""
        while True:
            for step in self._list_executing():
                self._advance(step, self._kinds[step["Type"]].proceed)
            if self.stopping:
                for step in self._list_executing():
                    self._advance(step, self._kinds[step["Type"]].stop)
            elif ready := self._list_ready():
                for step in ready:
                    start_ms = self._services.ledger.now_ms()
                    started = {"type": step["Type"], "status": "Executing", "start_ms": start_ms}
                    self._advance(step, self._kinds[step["Type"]].start, **started)
                continue  # a condition opens its branch at once
            if not self._list("Executing"):
                return
            self._services.threads.wait_for_news(_POLL_SECONDS)

    def _list_ready(self) -> list[Mapping[str, Any]]:
        """List the steps that may start now; none after one has failed."""
        if self._list("Failed", "Stopped"):
            return []
        started, succeeded = self.execution.steps, set(self._list("Succeeded"))
        ready = [
            planned.definition
            for name, planned in self._steps.items()
            if name not in started
            and planned.needs <= succeeded
            and all(started[guard]["metadata"]["Outcome"] == str(outcome) for guard, outcome in planned.guards)
        ]
        most = self.execution.request.get("ParallelismConfiguration", {}).get("MaxParallelExecutionSteps")
        return ready if most is None else ready[: most - len(self._list("Executing"))]

    def _list_executing(self) -> list[Mapping[str, Any]]:
        return [self._steps[name].definition for name in self._list("Executing")]

    def _list(self, *statuses: str) -> list[str]:
        return [name for name, step in self.execution.steps.items() if step["status"] in statuses]

    def _advance(
        self, step: Mapping[str, Any], act: Callable[[Mapping[str, Any]], dict[str, Any]], **members: Any
    ) -> None:
        """Store ``members`` and those that ``act`` returns; where it raises what a definition can cause, it failed."""
        try:
            members |= act(step)
        except (BotoCoreError, ClientError, LookupError, TypeError, ValueError) as error:
            members |= {"status": "Failed", "failure_reason": f"ClientError: {error}"}
        if members.get("status", "Executing") != "Executing":
            members["end_ms"] = self._services.ledger.now_ms()
        if members:
            self._change(lambda execution, now_ms: execution.set_step(step["Name"], now_ms, **members))

    def _describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        return self._kinds[step["Type"]].describe(step)

    def _end(self) -> None:
        failed = bool(self._list("Failed", "Stopped"))

        def conclude(execution: PipelineExecution, now_ms: int) -> PipelineExecution:
            if execution.status == "Stopping":
                return execution.transition("Stopped", now_ms)
            if failed:
                return execution.fail(now_ms, "Step failure: One or multiple steps failed.")
            return execution.transition("Completed", now_ms)

        self._change(conclude)

    def ask_stop(self, grace_seconds: float) -> None:  # noqa: ARG002 - that of each job counts
        """Start nothing more and stop what runs; returns at once. Any thread may call it, more than once."""
        self._stop_asked.set()

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the execution is stopping and ask it to, because the emulator ends."""
        self._services.ledger.change_job(
            PipelineExecution, self.execution.region, self.name, PipelineExecution.begin_stop
        )
        self.shutting_down = True
        self.ask_stop(grace_seconds)

    def reload(self) -> None:
        """Read the execution again: a client's request may have changed it."""
        self._change(lambda execution, _: execution)

    def _change(self, change: Callable[[PipelineExecution, int], PipelineExecution]) -> None:
        self.execution = self._services.ledger.change_job(PipelineExecution, self.execution.region, self.name, change)


def _connect(execution: PipelineExecution, settings: Settings, service: str) -> Any:
    import boto3
    from botocore.config import Config

    # A function may take longer than the 60 s after which a client sends its request again.
    once = Config(read_timeout=_LONGEST_CALL_SECONDS, retries={"total_max_attempts": 1})
    role = execution.request.get("RoleArn")
    credentials = (
        settings.issue_credentials(role, execution.name, _LONGEST_SECONDS) if role else settings.container_credentials
    )
    make: Any = boto3.client
    return make(
        service,
        config=once if service == "lambda" else None,
        endpoint_url=settings.endpoint_url,
        verify=None if settings.ca_bundle is None else str(settings.ca_bundle),
        region_name=execution.region,
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
    )
