"""AWS's wording of validation errors that jsonschema finds.

One message lists all the constraints that a request violates.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any, cast

from emulator.exceptions import SerializationException, ValidationException

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jsonschema.exceptions import ValidationError

# The order in which AWS lists them for the members of a list or a map.
_CONSTRAINTS = {
    "maxLength": "Member must have length less than or equal to {}",
    "minLength": "Member must have length greater than or equal to {}",
    "maxItems": "Member must have length less than or equal to {}",
    "minItems": "Member must have length greater than or equal to {}",
    "maxProperties": "Member must have length less than or equal to {}",
    "minProperties": "Member must have length greater than or equal to {}",
    "maximum": "Member must have value less than or equal to {}",
    "minimum": "Member must have value greater than or equal to {}",
    "enum": "Member must satisfy enum value set: {}",
    "pattern": "Member must satisfy regular expression pattern: {}",
}
# How much of a value, or of a key in a path, an error message repeats.
_SPELLED_CHARACTERS = 4096
_NOT_NULL = "Member must not be null"
# What AWS's parser calls the types that it expects.
_WANTED = {
    "string": "a String",
    "boolean": "a Boolean",
    "integer": "an Integer",
    "number": "a Double",
    "array": "a List",
    "object": "a Map",
}


def raise_violations(errors: Iterable[ValidationError], request: Mapping[str, Any], order: Sequence[str]) -> None:
    """Raise one error for everything in ``errors``; return if there is nothing.

    Args:
        errors: the errors of the whole request.
        request: the validated request.
        order: the names of the request's members; violations are listed in this order.

    Raises:
        SerializationException: something has the wrong type; AWS's parser reports this before any constraint.
        ValidationException: constraints are violated.
    """
    rank = {name: index for index, name in enumerate(order)}
    violations: dict[str, int] = {}
    for error in errors:
        if error.validator == "type" and not _is_null_member(error):
            raise SerializationException(_describe_type(error))
        text = _describe(error, request)
        name = error.absolute_path[0] if error.absolute_path else _first_missing(error)
        violations.setdefault(text, rank.get(str(name), len(rank)))
    if violations:
        texts = sorted(violations, key=violations.__getitem__)
        noun = "error" if len(texts) == 1 else "errors"
        raise ValidationException(f"{len(texts)} validation {noun} detected: {'; '.join(texts)}")


def _describe(error: ValidationError, request: Mapping[str, Any]) -> str:
    path = list(error.absolute_path)
    if error.validator == "required":
        return f"Value null at '{_spell([*path, _first_missing(error)])}' failed to satisfy constraint: {_NOT_NULL}"
    if error.validator == "type":
        return f"Value null at '{_spell(path)}' failed to satisfy constraint: {_NOT_NULL}"
    value = error.instance
    constraint = _spell_constraint(str(error.validator), error.validator_value)
    schema_path = list(error.absolute_schema_path)
    role = schema_path[-2] if len(schema_path) > 1 else None
    if isinstance(value, (str, int, float)) and role in ("items", "propertyNames", "additionalProperties"):
        # A scalar inside a list or a map: AWS shows the whole list or map and the constraint on each of its members.
        where = {"items": "Member", "propertyNames": "Map keys", "additionalProperties": "Map value"}[str(role)]
        path = path if role == "propertyNames" else path[:-1]
        value = reduce(getitem, path, cast("Any", request))
        constraint = f"{where} must satisfy constraint: [{_spell_all(error.schema)}]"
    return f"Value '{_cut(_spell_value(value))}' at '{_spell(path)}' failed to satisfy constraint: {constraint}"


def _first_missing(error: ValidationError) -> str:
    """Return the member that a ``required`` error is about: jsonschema reports one per error, only in the message."""
    required = cast("list[str]", error.validator_value)
    return next(name for name in required if error.message.startswith(repr(name)))


def _is_null_member(error: ValidationError) -> bool:
    return error.instance is None and bool(error.absolute_path)


def _describe_type(error: ValidationError) -> str:
    where = f" (at '{_spell(list(error.absolute_path))}')" if error.absolute_path else ""
    match error.instance:
        case dict():
            return f"Start of structure or map found where not expected.{where}"
        case list():
            return f"Start of list found where not expected.{where}"
        case bool() | None as literal:
            kind = json.dumps(literal).upper()
        case literal:
            kind = "STRING" if isinstance(literal, str) else "NUMBER"
    return f"{kind}_VALUE can not be converted to {_WANTED[str(error.validator_value)]}{where}"


def _spell_constraint(keyword: str, bound: Any) -> str:
    return _CONSTRAINTS[keyword].format(f"[{', '.join(bound)}]" if keyword == "enum" else bound)


def _spell_all(schema: Any) -> str:
    return ", ".join(_spell_constraint(keyword, schema[keyword]) for keyword in _CONSTRAINTS if keyword in schema)


def _spell(path: Sequence[str | int]) -> str:
    """Format a path as AWS does: ``debugRuleConfigurations.1.member.ruleConfigurationName``, counted from 1."""
    parts = [f"{part + 1}.member" if isinstance(part, int) else _cut(part[:1].lower() + part[1:]) for part in path]
    return ".".join(parts)


def _cut(text: str) -> str:
    return text if len(text) <= _SPELLED_CHARACTERS else f"{text[:_SPELLED_CHARACTERS]}..."


def _spell_value(value: Any) -> str:
    """Format a value as Java prints it."""
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_spell_value, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}={_spell_value(entry)}" for key, entry in value.items()) + "}"
        case None:
            return "null"
        case _:
            return str(value)
