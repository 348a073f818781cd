"""The life of a pipeline's execution: each step is a job, made by the API as any client makes it."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.jobs.records.descriptions import to_seconds
from emulator.jobs.records.pipeline_execution import (
    EXECUTION_STATUSES,
    PipelineExecution,
    bind_parameters,
    follow_path,
    list_needs,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.jobs.runs.collaborators import Collaborators

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


class StepKind(NamedTuple):
    """A kind of job that a step may be: what its operations and members are called, and how long its name may be."""

    job: str
    name_length: int

    @property
    def operation(self) -> str:
        """The end of the names of its operations, as boto3 calls them."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.job).lower()


_KINDS = {
    "Training": StepKind("TrainingJob", 63),
    "Processing": StepKind("ProcessingJob", 63),
    "Tuning": StepKind("HyperParameterTuningJob", 32),
}


class PipelineRun:
    """The run of one execution. Its own thread calls ``live``; other threads may ask it to stop."""

    def __init__(self, execution: PipelineExecution, collaborators: Collaborators) -> None:
        """Prepare a run, of a new execution or of one that ran before a restart."""
        self.arn, self.name = execution.arn, execution.name
        self._execution = execution
        self._with = collaborators
        self._stop_asked = Event()
        if execution.status == "Stopping":
            self._stop_asked.set()
        self._client: Any = None

    def live(self) -> None:
        """Drive the execution from where it is to its end."""
        try:
            self._connect()
            self._run_steps()
            self._end()
        except Exception as error:
            logger.exception("The pipeline execution %s failed by a defect of the emulator", self.name)
            reason = f"InternalServerError: {type(error).__name__}: {error}."
            self._with.threads.store_at_last(lambda: self._change(lambda each, now_ms: each.fail(now_ms, reason)))

    def _connect(self) -> None:
        import boto3

        credentials = self._with.settings.container_credentials
        self._client = boto3.client(
            "sagemaker",
            endpoint_url=self._with.settings.endpoint_url,
            region_name=self._execution.region,
            aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        )

    def _run_steps(self) -> None:
        """Keep steps going whose needs are met, until nothing runs and nothing more can."""
        steps = {step["Name"]: step for step in self._execution.definition["Steps"]}
        while True:
            for name in self._list("Executing"):
                self._look_at(name, steps[name])
            stopping = self._stop_asked.is_set()
            if stopping:
                for name in self._list("Executing"):
                    self._stop_step(steps[name])
            elif not self._list("Failed", "Stopped"):
                succeeded = set(self._list("Succeeded"))
                most = self._execution.request.get("ParallelismConfiguration", {}).get("MaxParallelExecutionSteps")
                for name, step in steps.items():
                    has_room = most is None or len(self._list("Executing")) < most
                    if has_room and name not in self._execution.steps and list_needs(step) <= succeeded:
                        self._start_step(name, step)
            if not self._list("Executing"):
                return
            self._with.threads.wait_for_news(_POLL_SECONDS)

    def _list(self, *statuses: str) -> list[str]:
        return [name for name, step in self._execution.steps.items() if step["status"] in statuses]

    def _start_step(self, name: str, step: Mapping[str, Any]) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        kind = _KINDS[step["Type"]]
        job_name = self._name_job(step)
        start_ms = self._with.ledger.now_ms()
        members: dict[str, Any] = {"start_ms": start_ms, "job": job_name, "type": step["Type"]}
        try:
            arguments = resolve(step["Arguments"], self._look_up)
            create = getattr(self._client, f"create_{kind.operation}")
            members |= {"arn": create(**arguments, **{f"{kind.job}Name": job_name})[f"{kind.job}Arn"]}
        except self._client.exceptions.ResourceInUse:
            members["arn"] = self._describe(step)[f"{kind.job}Arn"]  # made before a restart
        except (BotoCoreError, ClientError, LookupError, TypeError) as error:
            members |= {"status": "Failed", "failure_reason": f"ClientError: {error}", "end_ms": start_ms}
        self._set(name, **({"status": "Executing"} | members))

    def _look_at(self, name: str, step: Mapping[str, Any]) -> None:
        """Take over the end of a step's job."""
        description = self._describe(step)
        status = description[f"{_KINDS[step['Type']].job}Status"]
        if status in ("Completed", "Failed", "Stopped"):
            reason = {"failure_reason": description["FailureReason"]} if "FailureReason" in description else {}
            self._set(name, status=EXECUTION_STATUSES[status], end_ms=self._with.ledger.now_ms(), **reason)

    def _stop_step(self, step: Mapping[str, Any]) -> None:
        from botocore.exceptions import ClientError

        kind = _KINDS[step["Type"]]
        try:
            getattr(self._client, f"stop_{kind.operation}")(**{f"{kind.job}Name": self._name_job(step)})
        except ClientError as error:
            logger.debug("%s: %s", self.arn, error)  # it has ended meanwhile

    def _describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        kind = _KINDS[step["Type"]]
        describe = getattr(self._client, f"describe_{kind.operation}")
        found: dict[str, Any] = describe(**{f"{kind.job}Name": self._name_job(step)})
        return found

    def _name_job(self, step: Mapping[str, Any]) -> str:
        """Name a step's job: the same after a restart."""
        names = [each["Name"] for each in self._execution.definition["Steps"]]
        name = f"{self.name}-{names.index(step['Name'])}-{_NOT_IN_A_NAME.sub('-', step['Name'])}"
        return name[: _KINDS[step["Type"]].name_length].rstrip("-")

    def _look_up(self, path: str) -> Any:
        """Find what a reference of the definition stands for.

        Raises:
            LookupError: nothing has that path.
        """
        head, _, rest = path.partition(".")
        if head == "Parameters":
            given = self._execution.request.get("PipelineParameters", ())
            return bind_parameters(self._execution.definition, given)[rest]
        if head == "Execution":
            started = datetime.fromtimestamp(to_seconds(self._execution.creation_ms), tz=UTC).isoformat()
            return {
                "PipelineExecutionId": self.name,
                "PipelineExecutionArn": self.arn,
                "PipelineName": self._execution.request["PipelineName"],
                "PipelineArn": self._execution.pipeline_arn,
                "StartDateTime": started,
                "CurrentDateTime": started,
            }[rest]
        name, _, inner = rest.partition(".")
        step = next(each for each in self._execution.definition["Steps"] if each["Name"] == name)
        return follow_path(self._describe(step), inner)

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
        self._with.ledger.change_job(PipelineExecution, self._execution.region, self.name, PipelineExecution.begin_stop)
        self.ask_stop(grace_seconds)

    def _set(self, name: str, **members: Any) -> None:
        self._change(lambda execution, now_ms: execution.set_step(name, now_ms, **members))

    def _change(self, change: Callable[[PipelineExecution, int], PipelineExecution]) -> None:
        self._execution = self._with.ledger.change_job(PipelineExecution, self._execution.region, self.name, change)
