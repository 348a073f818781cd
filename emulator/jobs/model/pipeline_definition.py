"""Definitions of pipelines: their steps, parameters and references.

Pure functions.
"""

from __future__ import annotations

import graphlib
import json
import operator
import re
import textwrap
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.exceptions import ValidationException

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

# Kinds of steps that run; the others are stored with the pipeline and refused when it is started.
STEP_TYPES = frozenset(
    {"Training", "Processing", "Tuning", "Condition", "Fail", "Lambda", "Callback", "Model", "RegisterModel"}
)
_BRANCHES = {True: "IfSteps", False: "ElseSteps"}

_TYPES = {"enum": ["String", "Integer", "Float", "Boolean"]}

# What every definition has to be like to be read. The arguments of a step are checked by the operation that runs it.
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["Steps"],
    "properties": {"Parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}}}
    | {"Steps": {"$ref": "#/$defs/steps"}},
    "$defs": {
        "parameter": {
            "type": "object",
            "required": ["Name"],
            "properties": {
                "Name": {"type": "string"},
                "Type": _TYPES,
                "EnumValues": {"type": "array"},
            },
        },
        "output": {
            "type": "object",
            "required": ["OutputName"],
            "properties": {"OutputName": {"type": "string"}, "OutputType": _TYPES},
        },
        "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
        "step": {
            "type": "object",
            "required": ["Name", "Type"],
            "properties": {
                "Name": {"type": "string"},
                "Type": {"type": "string"},
                "Arguments": {"type": ["object", "null"]},
                "DependsOn": {"type": ["array", "null"], "items": {"type": "string"}},
                "OutputParameters": {"type": ["array", "null"], "items": {"$ref": "#/$defs/output"}},
            },
            "if": {"properties": {"Type": {"const": "Condition"}}},
            "then": {
                "required": ["Arguments"],
                "properties": {
                    "Arguments": {
                        "type": "object",
                        "required": ["Conditions"],
                        "properties": {
                            "Conditions": {"type": "array"},
                            "IfSteps": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/steps"}]},
                            "ElseSteps": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/steps"}]},
                        },
                    }
                },
            },
        },
    },
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


class PlannedStep(NamedTuple):
    """A step of a definition.

    Attributes:
        needs: the steps that have to succeed before.
        used: those of them whose properties it has.
        guards: the conditions in whose branches it is, with what each of them has to come to.
    """

    definition: Mapping[str, Any]
    needs: frozenset[str]
    used: frozenset[str]
    guards: tuple[tuple[str, bool], ...]


def plan_steps(definition: Mapping[str, Any]) -> dict[str, PlannedStep]:
    """Plan every step, by name: first those at the top, then those behind conditions."""
    planned: dict[str, PlannedStep] = {}
    for step, guards in _walk(definition):
        used = _list_used(step)
        named = {name.split("[")[0] for name in step.get("DependsOn") or ()}
        needs = named | used | {name for name, _ in guards}
        planned[step["Name"]] = PlannedStep(step, frozenset(needs), frozenset(used), guards)
    return planned


def _walk(definition: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[tuple[str, bool], ...]]]:
    """Yield each step with its guards, level by level."""
    waiting: deque[tuple[Sequence[Mapping[str, Any]], tuple[tuple[str, bool], ...]]] = deque(
        [(definition["Steps"], ())]
    )
    while waiting:
        steps, guards = waiting.popleft()
        for step in steps:
            yield step, guards
            if step["Type"] == "Condition":
                for outcome, branch in _BRANCHES.items():
                    waiting.append((step["Arguments"].get(branch) or (), (*guards, (step["Name"], outcome))))


def check_start(text: str, given: Sequence[Mapping[str, str]]) -> None:
    """Check that a definition can be run with the given values of its parameters.

    Raises:
        ValidationException: it cannot.
    """
    definition = read_definition(text)
    bound = bind_parameters(definition, given)
    for each in definition.get("Parameters", ()):
        allowed = each.get("EnumValues")
        if allowed and (value := bound[each["Name"]]) not in allowed:
            raise ValidationException(
                f"The value {value!r} of the parameter {each['Name']} is not one of its EnumValues: "
                f"{', '.join(map(str, allowed))}."
            )


def read_definition(text: str) -> Mapping[str, Any]:
    """Read a pipeline's definition.

    Raises:
        ValidationException: it is none, or has a step that is not run here.
    """
    from jsonschema.exceptions import best_match

    try:
        definition: Mapping[str, Any] = json.loads(text)
        wrong = best_match(_build_validator().iter_errors(definition))
    except ValueError as error:
        raise ValidationException(f"The pipeline's definition is not JSON: {error}.") from error
    except RecursionError:
        raise ValidationException("The pipeline's definition is nested too deeply.") from None
    if wrong is not None:
        place = wrong.json_path.removeprefix("$").removeprefix(".") or "its top level"
        said = textwrap.shorten(wrong.message, 200, placeholder=" ...")
        raise ValidationException(f"The pipeline's definition is wrong at {place}: {said}.")
    kinds = [(step["Name"], step["Type"]) for step, _ in _walk(definition)]
    if other := [f"{name} ({kind})" for name, kind in kinds if kind not in STEP_TYPES]:
        raise ValidationException(
            f"Steps of these types are not emulated: {', '.join(other)}. What runs: {', '.join(sorted(STEP_TYPES))}."
        )
    planned = plan_steps(definition)
    for name, step in planned.items():
        if unknown := sorted(step.needs - planned.keys()):
            raise ValidationException(f"The step {name} needs {', '.join(unknown)}, which the pipeline does not have.")
    check_order(definition)
    return definition


@cache
def _build_validator() -> Validator:
    """Build the validator of definitions. jsonschema is imported here to keep the start fast."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_SCHEMA)


def check_order(definition: Mapping[str, Any]) -> None:
    """Check that there is an order in which every step can be run.

    Raises:
        ValidationException: two steps have the same name, steps need one another, or a step needs a Fail step.
    """
    names = Counter(step["Name"] for step, _ in _walk(definition))
    if doubled := [name for name, count in names.items() if count > 1]:
        raise ValidationException(f"Several steps have the same name: {', '.join(doubled)}. Give each its own.")
    planned = plan_steps(definition)
    try:
        graphlib.TopologicalSorter({name: sorted(step.needs) for name, step in planned.items()}).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise ValidationException(f"No step of this cycle could ever start, as each needs the next: {cycle}.") from None
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
        bound[name] = read_value(name, kind, values.pop(name)) if name in values else each["DefaultValue"]
    if values:
        raise ValidationException(f"The pipeline has no parameters {', '.join(sorted(values))}.")
    return bound


def read_value(name: str, kind: str, text: str) -> Any:
    """Read the text of a parameter or an output as its type.

    Raises:
        ValidationException: the text is no value of this type.
    """
    try:
        return _READERS[kind](text)
    except (KeyError, ValueError):
        raise ValidationException(f"The value of the parameter {name} does not have the type {kind}.") from None


def _list_used(step: Mapping[str, Any]) -> set[str]:
    own = {key: value for key, value in (step.get("Arguments") or {}).items() if key not in _BRANCHES.values()}
    paths = [*_find_paths(own), *_find_paths(step.get("FunctionArn")), *_find_paths(step.get("SqsQueueUrl"))]
    return {path.split(".")[1] for path in paths if path.startswith("Steps.")}


def _find_paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.keys() == {"Get"} and isinstance(value["Get"], str):
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
