"""Pipeline execution records, and results that they take from one another.

Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from emulator.exceptions import ConflictException, ValidationException
from emulator.jobs.model.arns import build_arn
from emulator.jobs.model.pipeline_definition import PlannedStep, plan_steps, read_value
from emulator.jobs.model.requested_job import RequestedJob

# Pipelines have words of their own for the statuses of every job.
EXECUTION_STATUSES = {
    "InProgress": "Executing",
    "Completed": "Succeeded",
    "Failed": "Failed",
    "Stopping": "Stopping",
    "Stopped": "Stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineExecution(RequestedJob):
    """One execution of a pipeline; its name is its id.

    Attributes:
        request: StartPipelineExecution's members, with the pipeline's definition as ``PipelineDefinition``; after a
            retry also its token (``RetryToken``) and the number of attempts of each retried step (``Attempts``).
        steps: those that were started, by name: status, job's name and ARN, times in epoch milliseconds. Those whose
            results were taken from another execution have its ARN as ``source``.
    """

    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def arn(self) -> str:
        """The execution's ARN."""
        return f"{self.pipeline_arn}/execution/{self.name}"

    @property
    def version_id(self) -> int | None:
        """The version of the pipeline; None if an older emulator has started it."""
        found: int | None = self.request.get("PipelineVersionId")
        return found

    @property
    def pipeline_arn(self) -> str:
        """The pipeline's ARN."""
        return build_arn(self.account_id, self.region, f"pipeline/{self.request['PipelineName']}")

    @property
    def definition(self) -> Mapping[str, Any]:
        """The pipeline's definition, as it was at the start."""
        found: Mapping[str, Any] = json.loads(self.request["PipelineDefinition"])
        return found

    @property
    def planned(self) -> dict[str, PlannedStep]:
        """The steps that this execution runs, those behind conditions included, by name."""
        planned = plan_steps(self.definition)
        selected = list_selected(self.request)
        return planned if selected is None else select_steps(planned, selected)

    def count_attempts(self, name: str) -> int:
        """Count the attempts of a step, the current one included."""
        attempts: int = self.request.get("Attempts", {}).get(name, 1)
        return attempts

    def set_step(self, name: str, now_ms: int, **members: Any) -> PipelineExecution:
        """Return the execution with members of a step set."""
        step = {**self.steps.get(name, {}), **members}
        return replace(self, steps={**self.steps, name: step}, last_modified_ms=now_ms)

    def retry(self, now_ms: int, token: str, parallelism: Mapping[str, int] | None) -> PipelineExecution:
        """Return the execution as running again, without the steps that failed or were stopped.

        Raises:
            ConflictException: it has not ended, or it succeeded.
        """
        if self.status not in ("Failed", "Stopped"):
            raise ConflictException(
                f"The pipeline execution {self.arn} is {EXECUTION_STATUSES[self.status]}: only one that is Failed or "
                "Stopped can be retried."
            )
        again = {name for name, step in self.steps.items() if step["status"] in ("Failed", "Stopped")}
        attempts = {**self.request.get("Attempts", {}), **{name: self.count_attempts(name) + 1 for name in again}}
        limit = {"ParallelismConfiguration": parallelism} if parallelism else {}
        return replace(
            self,
            request={**self.request, **limit, "Attempts": attempts, "RetryToken": token},
            steps={name: step for name, step in self.steps.items() if name not in again},
            status="InProgress",
            failure_reason=None,
            end_ms=None,
            last_modified_ms=now_ms,
        )

    def answer_callback(
        self, now_ms: int, token: str, outputs: Sequence[Mapping[str, str]] | None, failure_reason: str | None
    ) -> PipelineExecution:
        """Return the execution with the end of the callback step that sent ``token``.

        Args:
            now_ms: the time of the answer.
            token: what the step's message had.
            outputs: values of the step's outputs; None if the step failed.
            failure_reason: why it failed, if it says so.

        Raises:
            ConflictException: the step has ended.
            ValidationException: an output has no value, or is not one of the step's.
        """
        name = self.find_callback(token)
        assert name is not None
        if self.steps[name]["status"] != "Executing":
            raise ConflictException(f"The step {name} of {self.arn} has ended: its token {token} was already used.")
        if outputs is None:
            reason = {"failure_reason": failure_reason} if failure_reason else {}
            return self.set_step(name, now_ms, status="Failed", end_ms=now_ms, **reason)
        definition = plan_steps(self.definition)[name].definition
        expected = {
            each["OutputName"]: each.get("OutputType", "String") for each in definition.get("OutputParameters") or ()
        }
        values = {each["Name"]: each["Value"] for each in outputs}
        if different := sorted(expected.keys() ^ values.keys()):
            raise ValidationException(
                f"OutputParameters must be {', '.join(expected) or 'empty'}, as the step {name} defines them. Missing "
                f"or too much: {', '.join(different)}."
            )
        typed = {output: read_value(output, expected[output], value) for output, value in values.items()}
        metadata = {**self.steps[name]["metadata"], "OutputParameters": [dict(each) for each in outputs]}
        return self.set_step(name, now_ms, status="Succeeded", end_ms=now_ms, metadata=metadata, outputs=typed)

    def find_callback(self, token: str) -> str | None:
        """Find the name of the callback step that has ``token``."""
        return next(
            (name for name, step in self.steps.items() if (step.get("metadata") or {}).get("CallbackToken") == token),
            None,
        )


def list_selected(request: Mapping[str, Any]) -> frozenset[str] | None:
    """List the steps that SelectiveExecutionConfig selects; None for all."""
    if "SelectiveExecutionConfig" not in request:
        return None
    return frozenset(each["StepName"] for each in request["SelectiveExecutionConfig"]["SelectedSteps"])


def select_steps(planned: Mapping[str, PlannedStep], selected: frozenset[str]) -> dict[str, PlannedStep]:
    """Keep the selected steps; of their needs and conditions, those that are selected."""
    return {
        name: step._replace(
            needs=step.needs & selected, guards=tuple(guard for guard in step.guards if guard[0] in selected)
        )
        for name, step in planned.items()
        if name in selected
    }


def copy_results(
    request: Mapping[str, Any], source: PipelineExecution | None, now_ms: int
) -> dict[str, dict[str, Any]]:
    """Copy the results that the selected steps need of other steps from the source execution.

    Args:
        request: StartPipelineExecution's members, with the pipeline's definition as ``PipelineDefinition``.
        source: the execution that SourcePipelineExecutionArn names, if any.
        now_ms: the time of the copy.

    Raises:
        ValidationException: a selected step does not exist, or the results of a needed step are missing.
    """
    selected = list_selected(request)
    if selected is None:
        return {}
    planned = plan_steps(json.loads(request["PipelineDefinition"]))
    if unknown := sorted(selected - planned.keys()):
        raise ValidationException(
            f"SelectedSteps has {', '.join(unknown)}, which the pipeline does not have. Its steps: "
            f"{', '.join(planned)}."
        )
    copied: dict[str, dict[str, Any]] = {}
    for name in sorted(selected):
        for needed in sorted(planned[name].used - selected - copied.keys()):
            found = None if source is None else source.steps.get(needed)
            if source is None or found is None or found["status"] != "Succeeded":
                raise ValidationException(
                    f"The step {name} uses results of {needed}, which is not selected: select it, or give a "
                    "SourcePipelineExecutionArn of an execution in which it succeeded."
                )
            times = {"start_ms": now_ms, "end_ms": now_ms}
            copied[needed] = {"source": source.arn, **found, **times}
    return copied
