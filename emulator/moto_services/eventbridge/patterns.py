"""Event patterns of EventBridge: validation and matching.

    {"source": ["aws.sagemaker"], "detail": {"$or": [{"loss": [{"numeric": [">", 2]}]}, {"rule": ["Overfit"]}]}}

If a pattern matches several fields within an array of objects, the fields must match in the same object. This also
applies across the alternatives of ``$or``.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import math
import operator
import re
from typing import TYPE_CHECKING, Any

from emulator.exceptions import EventPatternError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Test = Callable[[Any], bool]

_OR = "$or"
# EventBridge's limit for the combinations of all alternatives of ``$or``.
_MAX_ALTERNATIVES = 1000
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_UNDER = {"<", "<="}


def parse_event_pattern(text: str) -> dict[str, Any]:
    """Parse and validate a pattern.

    Raises:
        EventPatternError: EventBridge rejects the pattern; the message is EventBridge's reason.
    """
    try:
        pattern = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EventPatternError(f"Invalid JSON: {error}") from error
    check_event_pattern(pattern)
    return dict(pattern)


def check_event_pattern(pattern: Any) -> None:
    """Validate a parsed pattern.

    Raises:
        EventPatternError: EventBridge rejects the pattern; the message is EventBridge's reason.
    """
    if not isinstance(pattern, dict):
        raise EventPatternError("Filter is not an object")
    _check_object(pattern)
    if _count_alternatives(pattern) > _MAX_ALTERNATIVES:
        raise EventPatternError(f"Rule can have at most {_MAX_ALTERNATIVES} combinations of $or")


def _check_object(pattern: Mapping[str, Any]) -> None:
    if not pattern:
        raise EventPatternError("Empty objects are not allowed")
    for key, value in pattern.items():
        if not isinstance(value, dict | list):
            raise EventPatternError(f'"{key}" must be an object or an array')
        if value == []:
            raise EventPatternError("Empty arrays are not allowed")
        for each in [value] if isinstance(value, dict) else value:
            if isinstance(value, dict) or _is_or(key, value):
                _check_object(each)
            else:
                _build_test(each)


def matches_event(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Return whether ``pattern``, which must be valid, matches ``event``."""
    return any(_matches(alternative, event) for alternative in _expand(pattern))


def _expand(pattern: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield patterns without ``$or``. The original pattern matches if one of them matches."""
    fields = [
        [{key: nested} for nested in _expand(value)] if isinstance(value, dict) else [{key: value}]
        for key, value in pattern.items()
        if not _is_or(key, value)
    ]
    choices = [
        [*itertools.chain.from_iterable(map(_expand, value))] for key, value in pattern.items() if _is_or(key, value)
    ]
    for picked in itertools.product(*fields, *choices):
        merged: dict[str, Any] = {}
        for part in picked:
            merged = _merge(merged, part)
        yield merged


def _count_alternatives(pattern: Mapping[str, Any]) -> int:
    """Count what ``_expand`` yields, without expanding: a short pattern can have billions."""
    return math.prod(
        sum(map(_count_alternatives, value)) if _is_or(key, value) else _count_alternatives(value)
        for key, value in pattern.items()
        if isinstance(value, dict) or _is_or(key, value)
    )


def _is_or(key: str, value: Any) -> bool:
    return key == _OR and isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _merge(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _matches(pattern: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    return all(_matches_field(value, node.get(key, _MISSING)) for key, value in pattern.items())


def _matches_field(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, dict):
        # A missing object is treated as empty, because a nested pattern may require that a field does not exist.
        objects = [each for each in _flatten(found) if isinstance(each, dict)] or [{}]
        return any(_matches(wanted, each) for each in objects)
    values = [each for each in _flatten(found) if not isinstance(each, dict)]
    return any(_fits(each, values) for each in wanted)


def _fits(wanted: Any, values: Sequence[Any]) -> bool:
    if isinstance(wanted, dict) and "exists" in wanted:
        return bool(values) is wanted["exists"]
    test = _build_test(wanted)
    return any(test(value) for value in values)


_MISSING: Any = []


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _flatten(each)
    else:
        yield value


def _build_test(wanted: Any) -> Test:
    """Build the test of whether a value matches ``wanted``, which is an entry of an array in a pattern."""
    if isinstance(wanted, list):
        raise EventPatternError("Match value must be String, number, true, false, or null")
    if not isinstance(wanted, dict):
        if _is_number(wanted):
            return lambda value: _is_number(value) and value == wanted
        # The types must be equal, because true must not match 1.
        return lambda value: type(value) is type(wanted) and value == wanted
    if len(wanted) != 1:
        raise EventPatternError(
            "Only one key allowed in match expression" if wanted else "Empty objects are not allowed"
        )
    ((kind, argument),) = wanted.items()
    build = _KINDS.get(kind)
    if build is None:
        raise EventPatternError(f"Unrecognized match type {kind}")
    return build(argument)


def _text_test(kind: str, compare: Callable[[str, str], bool], fold: bool = False) -> Callable[[Any], Test]:
    """Return the builder of tests with a string argument. If ``fold`` is true, the tests ignore case."""

    def build(argument: Any) -> Test:
        folded = fold
        if kind in ("prefix", "suffix") and isinstance(argument, dict) and list(argument) == ["equals-ignore-case"]:
            folded, argument = True, argument["equals-ignore-case"]
        if not isinstance(argument, str):
            raise EventPatternError(f"{kind} match pattern must be a string")
        if folded:
            return lambda value: isinstance(value, str) and compare(value.lower(), argument.lower())
        return lambda value: isinstance(value, str) and compare(value, argument)

    return build


def _wildcard_test(argument: Any) -> Test:
    if not isinstance(argument, str):
        raise EventPatternError("wildcard match pattern must be a string")
    pieces = re.findall(r"\\[*\\]|\*+|[^*\\]+|\\", argument)
    for number, piece in enumerate(pieces):
        if piece.startswith("**"):
            raise EventPatternError(f"Consecutive wildcard characters at pos {len(''.join(pieces[:number]))}")
        if piece == "\\":
            raise EventPatternError(f"Invalid escape character at pos {len(''.join(pieces[:number]))}")
    expression = re.compile(
        "".join(".*" if piece == "*" else re.escape(piece.removeprefix("\\")) for piece in pieces), re.DOTALL
    )
    return lambda value: isinstance(value, str) and expression.fullmatch(value) is not None


def _numeric_test(argument: Any) -> Test:
    if not isinstance(argument, list):
        raise EventPatternError("Value of numeric must be an array.")
    if not argument or len(argument) % 2 or len(argument) > 4:
        raise EventPatternError(
            "Too many elements in numeric expression" if len(argument) > 4 else "Invalid numeric match"
        )
    bounds = list(zip(argument[::2], argument[1::2], strict=True))
    for name, bound in bounds:
        if name not in _ORDER:
            raise EventPatternError(f"Unrecognized numeric range operator: {name}")
        if not _is_number(bound):
            raise EventPatternError(f"Value of {'equals' if name == '=' else name} must be numeric")
    if len(bounds) == 2:
        (lower, bottom), (upper, top) = bounds
        if "=" in (lower, upper) or lower in _UNDER or upper not in _UNDER:
            raise EventPatternError("Too many terms in numeric range expression")
        if bottom >= top:
            raise EventPatternError("Bottom must be less than top")
    return lambda value: _is_number(value) and all(_ORDER[name](value, bound) for name, bound in bounds)


def _exists_test(argument: Any) -> Test:
    if not isinstance(argument, bool):
        raise EventPatternError("exists match pattern must be either true or false.")
    return lambda _: argument


def _cidr_test(argument: Any) -> Test:
    try:
        network = ipaddress.ip_network(argument if isinstance(argument, str) and "/" in argument else "", strict=False)
    except ValueError as error:
        raise EventPatternError("Malformed CIDR, one '/' required") from error

    def is_inside(value: Any) -> bool:
        try:
            return isinstance(value, str) and ipaddress.ip_address(value) in network
        except ValueError:
            return False

    return is_inside


def _anything_but_test(argument: Any) -> Test:
    inner = list(argument.items()) if isinstance(argument, dict) else []
    if len(inner) == 1 and inner[0][0] in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
        kind, given = inner[0]
        tests = [_KINDS[kind](each) for each in (given if isinstance(given, list) else [given])]
        if not tests:
            raise EventPatternError("Empty arrays are not allowed")
        return lambda value: isinstance(value, str) and not any(test(value) for test in tests)
    refused = argument if isinstance(argument, list) else [argument]
    if not refused or not all(isinstance(each, str) or _is_number(each) for each in refused):
        raise EventPatternError("Value of anything-but must be an array or single string/number value.")
    if len({isinstance(each, str) for each in refused}) == 2:
        raise EventPatternError(
            "Inside anything but list, either all values are number or string, mixed type is not supported"
        )
    return lambda value: not any(isinstance(value, bool) is False and value == each for each in refused)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], Test]] = {
    "prefix": _text_test("prefix", str.startswith),
    "suffix": _text_test("suffix", str.endswith),
    "equals-ignore-case": _text_test("equals-ignore-case", operator.eq, fold=True),
    "wildcard": _wildcard_test,
    "numeric": _numeric_test,
    "exists": _exists_test,
    "cidr": _cidr_test,
    "anything-but": _anything_but_test,
}
