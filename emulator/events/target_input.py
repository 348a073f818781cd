"""Target input: Input, InputPath and InputTransformer of EventBridge targets."""

import json
import re
from collections.abc import Mapping
from typing import Any

from emulator.exceptions import TargetInputError
from emulator.moto_services.eventbridge.rules import Target

_STEP = re.compile(r"""\.([A-Za-z0-9_@\-]+)|\[(\d+)\]|\[['"]([^'"]+)['"]\]""")
_PLACEHOLDER = re.compile(r"<([A-Za-z0-9_.\-]+)>")
_STRING_OR_PLACEHOLDER = re.compile(rf'"(?:\\.|[^"\\])*"?|{_PLACEHOLDER.pattern}', re.DOTALL)


def build_target_input(target: Target, event: Mapping[str, Any]) -> str:
    """Build the text that ``target`` receives for ``event``.

    Raises:
        TargetInputError: a path is not a JSON path that EventBridge supports, or the template is missing.
    """
    parameters = target.parameters
    if (constant := parameters.get("Input")) is not None:
        return str(constant)
    if (path := parameters.get("InputPath")) is not None:
        return json.dumps(read_path(event, path))
    if (transformer := parameters.get("InputTransformer")) is not None:
        return _fill_template(target, transformer, event)
    return json.dumps(event)


def read_path(event: Any, path: str) -> Any:
    """Return the value at ``path`` (such as ``$.detail.list[0].name``) in ``event``; None if it does not exist.

    Raises:
        TargetInputError: ``path`` is not a supported JSON path.
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

    def fill(found: re.Match[str]) -> str:
        if found[1] is None:
            return _PLACEHOLDER.sub(lambda within: _render(values, within, quoted=True), found[0])
        return _render(values, found, quoted=False)

    return _STRING_OR_PLACEHOLDER.sub(fill, template)


def _render(values: Mapping[str, Any], placeholder: re.Match[str], *, quoted: bool) -> str:
    """Format a placeholder's value as JSON. Inside a JSON string (``quoted``), the value gets no quotes."""
    if placeholder[1] not in values:
        return placeholder[0]
    value = values[placeholder[1]]
    if not quoted:
        return json.dumps(value)
    if value is None:
        return ""
    return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]
