"""What a target gets of an event: all of it, a part (InputPath), a constant (Input), a template (InputTransformer)."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

from emulator.exceptions import TargetInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.moto_services.eventbridge import Target

_STEP = re.compile(r"""\.([A-Za-z0-9_@\-]+)|\[(\d+)\]|\[['"]([^'"]+)['"]\]""")
_PLACEHOLDER = re.compile(r"<([A-Za-z0-9_.\-]+)>")


def build_target_input(target: Target, event: Mapping[str, Any]) -> str:
    """Build the text that ``target`` gets for ``event``.

    Raises:
        TargetInputError: a path that is no JSON path of the kind that EventBridge takes, or a template that is missing.
    """
    if target.input is not None:
        return target.input
    if target.input_path is not None:
        return json.dumps(read_path(event, target.input_path))
    if target.input_transformer is not None:
        return _fill_template(target, target.input_transformer, event)
    return json.dumps(event)


def read_path(event: Any, path: str) -> Any:
    """Follow ``path`` (``$.detail.list[0].name``) through ``event``; None where it leads nowhere.

    Raises:
        TargetInputError: ``path`` is something else.
    """
    if not path.startswith("$"):
        raise TargetInputError(f"The path {path!r} must begin with '$', like $.detail.TrainingJobName.")
    position, value = 1, event
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise TargetInputError(f"The path {path!r} cannot be read from {path[position:]!r} on: use .name or [0].")
        position = step.end()
        value = _descend(value, step)
    return value


def _descend(value: Any, step: re.Match[str]) -> Any:
    name, index = step[1] or step[3], step[2]
    if index is not None:
        return value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
    return value.get(name) if isinstance(value, dict) else None


def _fill_template(target: Target, transformer: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    template = transformer.get("InputTemplate")
    if not isinstance(template, str):
        raise TargetInputError("The InputTransformer has no InputTemplate.")
    values: dict[str, Any] = {
        "aws.events.rule-arn": target.rule_arn,
        "aws.events.rule-name": target.rule_arn.rpartition("/")[2],
        "aws.events.event.ingestion-time": event.get("time"),
        "aws.events.event": {key: value for key, value in event.items() if key != "detail"},
        "aws.events.event.json": event,
    }
    for name, path in (transformer.get("InputPathsMap") or {}).items():
        values[name] = read_path(event, path)
    filled: list[str] = []
    for piece, quoted in _split_by_quotes(template):
        filled.append(_PLACEHOLDER.sub(functools.partial(_render, values, quoted), piece))
    return "".join(filled)


def _render(values: Mapping[str, Any], quoted: bool, found: re.Match[str]) -> str:
    """Write a value as JSON; within a JSON string without quotes of its own."""
    if found[1] not in values:
        return found[0]
    value = values[found[1]]
    if not quoted:
        return json.dumps(value)
    if value is None:
        return ""
    return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]


def _split_by_quotes(template: str) -> list[tuple[str, bool]]:
    """Cut ``template`` into pieces, and say of each whether it lies within a JSON string."""
    pieces: list[tuple[str, bool]] = []
    start, quoted, position = 0, False, 0
    while position < len(template):
        if template[position] == "\\" and quoted:
            position += 1
        elif template[position] == '"':
            end = position if quoted else position + 1
            pieces.append((template[start:end], quoted))
            start, quoted = end, not quoted
        position += 1
    pieces.append((template[start:], quoted))
    return pieces
