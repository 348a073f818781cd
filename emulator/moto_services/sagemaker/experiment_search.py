"""Search expressions over experiments, trials and trial components."""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from botocore.model import ListShape, MapShape, Shape, StructureShape

from emulator.exceptions import ValidationException
from emulator.number_text import read_number
from emulator.service_model import load_service_model

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
}
# The statistics of a metric, as in ``Metrics.loss.Last``; without one, the last value counts.
_STATISTICS = frozenset({"Min", "Max", "Avg", "StdDev", "Last", "Count"})


def select_results(
    described: Sequence[Mapping[str, Any]], expression: Mapping[str, Any], sort_by: str, *, descending: bool
) -> list[Mapping[str, Any]]:
    """Return the descriptions that match a SearchExpression, sorted.

    Raises:
        ValidationException: a property is unknown, or an operator or value does not suit.
    """
    _check_names(expression, sort_by)
    found = [each for each in described if _matches(each, expression)]

    def find_key(each: Mapping[str, Any]) -> tuple[bool, str, Any]:
        values = _find_values(each, sort_by)
        value = values[0] if values else None
        if isinstance(value, datetime):
            value = value.timestamp()
        # Numbers and texts have no common order. Descriptions without a value come last.
        number = isinstance(value, (int, float))
        return value is not None, "" if number else str(value), value if number else 0

    return sorted(found, key=find_key, reverse=descending)


def _check_names(expression: Mapping[str, Any], *more: str) -> None:
    names = [each["Name"] for each in expression.get("Filters") or ()]
    for nested in expression.get("NestedFilters") or ():
        names += [each["Name"] for each in nested["Filters"]]
    for name in (*names, *more):
        if not _is_known(name):
            raise ValidationException(f"Unknown property name: {name}")
    for each in expression.get("SubExpressions") or ():
        _check_names(each)


def _is_known(name: str) -> bool:
    head, _, rest = name.partition(".")
    if head in ("Metrics", "Tags") and rest:
        return True
    return any(_has_path(load_service_model().shape_for(kind), name.split(".")) for kind in _SHAPES)


_SHAPES = ("Experiment", "Trial", "TrialComponent")


def _has_path(shape: Shape, parts: Sequence[str]) -> bool:
    if isinstance(shape, ListShape):
        return _has_path(shape.member, parts)
    if not parts or isinstance(shape, MapShape):
        return True
    if not isinstance(shape, StructureShape):
        return False
    member = cast("Mapping[str, Shape]", shape.members).get(parts[0])
    return member is not None and _has_path(member, parts[1:])


def _matches(each: Mapping[str, Any], expression: Mapping[str, Any]) -> bool:
    outcomes = [_compare(_find_values(each, one["Name"]), one) for one in expression.get("Filters") or ()]
    outcomes += [_matches_nested(each, one) for one in expression.get("NestedFilters") or ()]
    outcomes += [_matches(each, one) for one in expression.get("SubExpressions") or ()]
    return (any(outcomes) if expression.get("Operator") == "Or" else all(outcomes)) if outcomes else True


def _matches_nested(each: Mapping[str, Any], nested: Mapping[str, Any]) -> bool:
    """Tell whether a single entry of the list matches all filters."""
    name = nested["NestedPropertyName"]
    entries = each.get(name)
    if not isinstance(entries, list):
        return False
    return any(
        all(_compare(_find_values({name: [entry]}, one["Name"]), one) for one in nested["Filters"]) for entry in entries
    )


def _find_values(described: Mapping[str, Any], name: str) -> list[Any]:
    head, _, rest = name.partition(".")
    if head == "Tags" and rest:
        return [each["Value"] for each in described.get("Tags", ()) if each["Key"] == rest]
    if head == "Metrics" and rest:
        metric, _, statistic = rest.rpartition(".")
        if statistic not in _STATISTICS:
            metric, statistic = rest, "Last"
        return [each[statistic] for each in described.get("Metrics", ()) if each["MetricName"] == metric]
    return _walk(described, name.split("."))


def _walk(value: Any, parts: Sequence[str]) -> list[Any]:
    if isinstance(value, list):
        return [found for entry in value for found in _walk(entry, parts)]
    if isinstance(value, dict) and parts:
        # A parameter's name may contain dots.
        for count in range(len(parts), 0, -1):
            if (key := ".".join(parts[:count])) in value:
                return _walk(value[key], parts[count:])
        return []
    if isinstance(value, dict):  # a parameter or an artifact
        return [entry for key, entry in value.items() if key in ("NumberValue", "StringValue", "Value")]
    return [value] if value is not None and not parts else []


def _compare(values: Sequence[Any], each: Mapping[str, Any]) -> bool:
    kind, wanted = each.get("Operator") or "Equals", each.get("Value")
    if kind in ("Exists", "NotExists"):
        return bool(values) == (kind == "Exists")
    if wanted is None:
        raise ValidationException(f"The filter on {each['Name']} has the operator {kind}: it needs a Value.")
    if kind == "NotEquals":
        return not any(_equals(value, wanted) for value in values)
    if kind == "Equals":
        return any(_equals(value, wanted) for value in values)
    if kind == "Contains":
        return any(wanted in str(value) for value in values)
    if kind == "In":
        return any(_equals(value, one.strip()) for value in values for one in wanted.split(","))
    return any(_is_ordered(value, kind, wanted, each["Name"]) for value in values)


def _equals(value: Any, wanted: str) -> bool:
    if isinstance(value, (int, float, datetime)) and not isinstance(value, bool):
        return _to_number(value) == _to_number(wanted)
    return str(value) == wanted


def _is_ordered(value: Any, kind: str, wanted: str, name: str) -> bool:
    limit, number = _to_number(wanted), _to_number(value)
    if limit is None:
        raise ValidationException(f"The Value {wanted!r} of the filter on {name} is neither a number nor a time.")
    return number is not None and _ORDERS[kind](number, limit)


def _to_number(value: Any) -> float | None:
    """Read a number, or a time as epoch seconds, in UTC unless it has a time zone."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float):
        return float(value)
    number = read_number(value)
    if number is None:
        with suppress(TypeError, ValueError):
            return _to_number(datetime.fromisoformat(value))
    return number
