"""Pipeline execution records, and steps of a definition with bound parameters.

Pure functions.
"""

from __future__ import annotations

import json
import operator
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from emulator.exceptions import ConflictException, ValidationException
from emulator.jobs.model.arns import build_arn
from emulator.jobs.model.requested_job import RequestedJob

# Kinds of steps that run; the others are stored with the pipeline and refused when it is started.
STEP_TYPES = frozenset(
    {"Training", "Processing", "Tuning", "Condition", "Fail", "Lambda", "Callback", "Model", "RegisterModel"}
)
_BRANCHES = {True: "IfSteps", False: "ElseSteps"}

# Pipelines have words of their own for the statuses of every job.
EXECUTION_STATUSES = {
    "InProgress": "Executing",
    "Completed": "Succeeded",
    "Failed": "Failed",
    "Stopping": "Stopping",
    "Stopped": "Stopped",
}

_READERS: Mapping[str, Callable[[str], Any]] = {
    "String": str,
    "Integer": int,
    "Float": float,
    "Boolean": lambda text: {"true": True, "false": False}[text.lower()],
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
}
_PATH = re.compile(r"\.?([\w-]+)|\[(\d+)\]|\[['\"]([^'\"]*)['\"]\]")


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
        typed = {output: _read_value(output, expected[output], value) for output, value in values.items()}
        metadata = {**self.steps[name]["metadata"], "OutputParameters": [dict(each) for each in outputs]}
        return self.set_step(name, now_ms, status="Succeeded", end_ms=now_ms, metadata=metadata, outputs=typed)

    def find_callback(self, token: str) -> str | None:
        """Find the name of the callback step that has ``token``."""
        return next(
            (name for name, step in self.steps.items() if (step.get("metadata") or {}).get("CallbackToken") == token),
            None,
        )


class PlannedStep(NamedTuple):
    """A step of a definition.

    Attributes:
        needs: the steps that have to succeed before.
        guards: the conditions in whose branches it is, with what each of them has to come to.
    """

    definition: Mapping[str, Any]
    needs: frozenset[str]
    guards: tuple[tuple[str, bool], ...]


def plan_steps(definition: Mapping[str, Any]) -> dict[str, PlannedStep]:
    """Plan every step, by name: first those at the top, then those behind conditions."""
    planned: dict[str, PlannedStep] = {}
    waiting: deque[tuple[Sequence[Mapping[str, Any]], tuple[tuple[str, bool], ...]]] = deque(
        [(definition["Steps"], ())]
    )
    while waiting:
        steps, guards = waiting.popleft()
        for step in steps:
            planned[step["Name"]] = PlannedStep(
                step, frozenset(_list_needs(step)) | {name for name, _ in guards}, guards
            )
            if step["Type"] == "Condition":
                arguments = step["Arguments"]
                for outcome, branch in _BRANCHES.items():
                    waiting.append((arguments.get(branch) or (), (*guards, (step["Name"], outcome))))
    return planned


def list_selected(request: Mapping[str, Any]) -> frozenset[str] | None:
    """List the steps that SelectiveExecutionConfig selects; None for all."""
    if "SelectiveExecutionConfig" not in request:
        return None
    return frozenset(each["StepName"] for each in request["SelectiveExecutionConfig"]["SelectedSteps"])


def select_steps(planned: Mapping[str, PlannedStep], selected: frozenset[str]) -> dict[str, PlannedStep]:
    """Keep the selected steps; of their needs and conditions, those that are selected."""
    return {
        name: PlannedStep(
            step.definition, step.needs & selected, tuple(guard for guard in step.guards if guard[0] in selected)
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
        for needed in sorted(_list_used(planned[name].definition) - selected - copied.keys()):
            found = None if source is None else source.steps.get(needed)
            if source is None or found is None or found["status"] != "Succeeded":
                raise ValidationException(
                    f"The step {name} uses results of {needed}, which is not selected: select it, or give a "
                    "SourcePipelineExecutionArn of an execution in which it succeeded."
                )
            times = {"start_ms": now_ms, "end_ms": now_ms}
            copied[needed] = {"source": source.arn, **found, **times}
    return copied


def read_definition(text: str) -> Mapping[str, Any]:
    """Read a pipeline's definition.

    Raises:
        ValidationException: it is none, or has a step that is not run here.
    """
    try:
        definition = json.loads(text)
        planned = plan_steps(definition)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValidationException(
            "The pipeline's definition is not a JSON object with Steps of a Name and a Type."
        ) from None
    kinds = {name: step.definition["Type"] for name, step in planned.items()}
    other = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in STEP_TYPES]
    if other:
        raise ValidationException(
            f"Steps of these types are not emulated: {', '.join(other)}. What runs: {', '.join(sorted(STEP_TYPES))}."
        )
    for name, step in planned.items():
        if unknown := sorted(step.needs - planned.keys()):
            raise ValidationException(f"The step {name} needs {', '.join(unknown)}, which the pipeline does not have.")
    refuse_needs_of_fail_steps(definition)
    found: Mapping[str, Any] = definition
    return found


def refuse_needs_of_fail_steps(definition: Mapping[str, Any]) -> None:
    """Refuse steps that need a Fail step: an execution ends with it.

    Raises:
        ValidationException: there is one.
    """
    planned = plan_steps(definition)
    for name, step in planned.items():
        for needed in sorted(step.needs & planned.keys()):
            if planned[needed].definition["Type"] == "Fail":
                raise ValidationException(
                    f"{name} can not depends on {needed}: that is a Fail step, which ends the execution. Remove it."
                )


def bind_parameters(definition: Mapping[str, Any], given: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Give every parameter of a definition its value: the one given, or the default.

    Raises:
        ValidationException: one without a value, with a value of another type, or that the definition does not have.
    """
    values = {each["Name"]: each["Value"] for each in given}
    bound = {}
    for each in definition.get("Parameters", ()):
        name, kind = each["Name"], each.get("Type", "String")
        if name not in values and "DefaultValue" not in each:
            raise ValidationException(f"The pipeline's parameter {name} has no default: give it in PipelineParameters.")
        bound[name] = _read_value(name, kind, values.pop(name)) if name in values else each["DefaultValue"]
    if values:
        raise ValidationException(f"The pipeline has no parameters {', '.join(sorted(values))}.")
    return bound


def _read_value(name: str, kind: str, text: str) -> Any:
    try:
        return _READERS[kind](text)
    except (KeyError, ValueError):
        raise ValidationException(f"The value of the parameter {name} does not have the type {kind}.") from None


def _list_needs(step: Mapping[str, Any]) -> set[str]:
    """List the steps that have to succeed before: those it names, and those whose properties it has."""
    return {str(name).split("[")[0] for name in step.get("DependsOn", ())} | _list_used(step)


def _list_used(step: Mapping[str, Any]) -> set[str]:
    own = {key: value for key, value in (step.get("Arguments") or {}).items() if key not in _BRANCHES.values()}
    paths = [*_find_paths(own), *_find_paths(step.get("FunctionArn")), *_find_paths(step.get("SqsQueueUrl"))]
    return {path.split(".")[1] for path in paths if path.startswith("Steps.")}


def _find_paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.keys() == {"Get"}:
            yield value["Get"]
        for entry in value.values():
            yield from _find_paths(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _find_paths(entry)


def resolve(value: Any, look_up: Callable[[str], Any], read_json: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Copy ``value`` with its references replaced, and joins joined.

    Args:
        value: arguments of a step.
        look_up: what a path such as ``Parameters.epochs`` stands for.
        read_json: what a ``Std:JsonGet``, whose own references are replaced already but for that to its property
            file, stands for.
    """
    match value:
        case {"Std:JsonGet": dict() as source, **rest} if not rest:
            given = {
                key: entry if key == "PropertyFile" else resolve(entry, look_up, read_json)
                for key, entry in source.items()
            }
            return read_json(given)
        case {"Get": str() as path, **rest} if not rest:
            return look_up(path)
        case {"Std:Join": {"On": str() as separator, "Values": list() as values}, **rest} if not rest:
            return separator.join(_to_text(resolve(entry, look_up, read_json)) for entry in values)
        case dict():
            return {key: resolve(entry, look_up, read_json) for key, entry in value.items()}
        case list():
            return [resolve(entry, look_up, read_json) for entry in value]
        case _:
            return value


def _to_text(value: Any) -> str:
    """Format a value that is joined: booleans as in JSON.

    >>> _to_text(False)
    'false'
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_true(condition: Mapping[str, Any]) -> bool:
    """Tell what a condition, with its references replaced, comes to.

    Raises:
        LookupError, TypeError: it is of no kind that there is, or compares what cannot be compared.
    """
    match condition["Type"]:
        case "Not":
            # The SDK writes Condition; AWS's schema of definitions has Expression.
            return not is_true(condition["Condition"] if "Condition" in condition else condition["Expression"])
        case "Or":
            return any(is_true(each) for each in condition["Conditions"])
        case "In":
            return condition["QueryValue"] in condition["Values"]
        case kind:
            return bool(_COMPARISONS[kind](condition["LeftValue"], condition["RightValue"]))


def follow_path(description: Any, path: str) -> Any:
    """Follow ``A.B['name'].C[0]`` into a description; a name finds the entry of a list that is called so.

    Raises:
        LookupError: there is nothing.
    """
    found = description
    for member, index, name in _PATH.findall(path):
        if index:
            found = found[int(index)]
        elif isinstance(found, list):
            wanted = name or member
            entries = [each for each in found if wanted in (v for k, v in each.items() if k.endswith("Name"))]
            found = entries[0]
        else:
            found = found[name or member]
    return found
