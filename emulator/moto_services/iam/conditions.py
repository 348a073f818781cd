"""Conditions of policy statements, with the operators of IAM.

    {"StringNotEquals": {"s3:x-amz-server-side-encryption": ["AES256", "aws:kms"]}}

A condition holds if all operators and keys match. A key matches if one of its values matches. If a request does not
have a key, no value matches, so only negated operators hold.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Test = Callable[[str, str], bool]

_VARIABLE = re.compile(r"\$\{([^}]*)\}")
# A policy variable with one of these names is the character itself. The mark before it shows that it is not a wildcard.
_LETTERS = ("*", "?", "$")
_MARK = "\0"
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "LessThanEquals": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEquals": operator.ge,
}


class UnknowableKeyError(Exception):
    """A condition depends on a key whose value the emulator cannot know; the message is the key."""


def is_operator(name: str) -> bool:
    """Return whether IAM has a condition operator with this name."""
    _, base, _ = _split_operator(name)
    return base == "Null" or base in _TESTS


def conditions_hold(
    conditions: Mapping[str, Mapping[str, Any]], find_values: Callable[[str], Sequence[str] | None]
) -> bool:
    """Return whether all conditions of a statement hold.

    Args:
        conditions: the values by operator and key. All operators must be valid.
        find_values: takes a key in lower case and returns its values in the request; None if the request does not have
            the key. It may raise UnknowableKeyError.

    Raises:
        UnknowableKeyError: the result depends on an unknowable key.
    """
    tests = [(name, key, wanted) for name, keys in conditions.items() for key, wanted in keys.items()]
    unknowable: UnknowableKeyError | None = None
    for name, key, wanted in tests:
        try:
            if not _holds(name, find_values(key.lower()), list(_list_texts(wanted, find_values))):
                return False  # regardless of the other conditions
        except UnknowableKeyError as error:
            unknowable = error
    if unknowable is not None:
        raise unknowable
    return True


def _holds(name: str, found: Sequence[str] | None, wanted: Sequence[str]) -> bool:
    quantifier, base, if_exists = _split_operator(name)
    if base == "Null":
        return any((found is None) is (each.lower() == "true") for each in wanted)
    test, is_negated = _TESTS[base]
    if "Like" not in base and not base.startswith("Arn"):
        wanted = [each.replace(_MARK, "") for each in wanted]
    if found is None and if_exists:
        return True
    if quantifier:
        fits = [any(test(each, value) for each in wanted) is not is_negated for value in found or ()]
        return all(fits) if quantifier == "ForAllValues" else any(fits)
    return any(test(each, value) for each in wanted for value in found or ()) is not is_negated


def _split_operator(name: str) -> tuple[str, str, bool]:
    quantifier, colon, rest = name.rpartition(":")
    if colon and quantifier not in ("ForAllValues", "ForAnyValue"):
        return "", name, False
    return quantifier, rest.removesuffix("IfExists"), rest.endswith("IfExists")


def _list_texts(wanted: Any, find_values: Callable[[str], Sequence[str] | None]) -> Iterator[str]:
    """Yield the values of a condition with their policy variables replaced.

    A value with a variable that the request does not have is left out.
    """
    for each in wanted if isinstance(wanted, list) else [wanted]:
        text = str(each).lower() if isinstance(each, bool) else str(each)
        values = {
            name: [_MARK + name] if name in _LETTERS else find_values(name.lower()) for name in _VARIABLE.findall(text)
        }
        if all(values.values()):
            yield _VARIABLE.sub(lambda match, known=values: known[match[1]][0], text)  # type: ignore[misc]


def _is_like(wanted: str, value: str) -> bool:
    """Match a pattern with the wildcards ``*`` and ``?``. After a mark, they are ordinary characters."""
    pieces = re.findall(f"{_MARK}?.", wanted, re.DOTALL)
    expression = "".join({"*": ".*", "?": "."}.get(piece, re.escape(piece[-1])) for piece in pieces)
    return re.fullmatch(expression, value, re.DOTALL) is not None


def _is_like_arn(wanted: str, value: str) -> bool:
    parts, found = wanted.split(":", 5), value.split(":", 5)
    return len(parts) == len(found) and all(map(_is_like, parts, found))


def _compare_read(read: Callable[[str], Any], compare: Callable[[Any, Any], bool]) -> Test:
    """Build a test that parses both texts with ``read`` and compares the results. Invalid texts never match."""

    def test(wanted: str, value: str) -> bool:
        try:
            return compare(read(value), read(wanted))
        except ValueError:
            return False

    return test


def _read_moment(text: str) -> datetime:
    """Parse a time in ISO 8601 or in epoch seconds.

    Raises:
        ValueError: the text is neither.
    """
    try:
        if re.fullmatch(r"\d+(\.\d+)?", text) and len(text) > len("2026"):
            return datetime.fromtimestamp(float(text), UTC)
        moment = datetime.fromisoformat(text if len(text) > len("2026") else f"{text}-01-01")
    except (OverflowError, OSError) as error:
        raise ValueError(text) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_in_network(wanted: str, value: str) -> bool:
    try:
        return ipaddress.ip_address(value) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return False


def _fold(compare: Test) -> Test:
    return lambda wanted, value: compare(wanted.lower(), value.lower())


# For each operator: the test of a policy's value against a request's value, and whether the operator is negated.
_TESTS: Mapping[str, tuple[Test, bool]] = {
    "StringEquals": (operator.eq, False),
    "StringNotEquals": (operator.eq, True),
    "StringEqualsIgnoreCase": (_fold(operator.eq), False),
    "StringNotEqualsIgnoreCase": (_fold(operator.eq), True),
    "StringLike": (_is_like, False),
    "StringNotLike": (_is_like, True),
    "ArnEquals": (_is_like_arn, False),
    "ArnLike": (_is_like_arn, False),
    "ArnNotEquals": (_is_like_arn, True),
    "ArnNotLike": (_is_like_arn, True),
    "Bool": (_fold(operator.eq), False),
    "BinaryEquals": (operator.eq, False),
    "IpAddress": (_is_in_network, False),
    "NotIpAddress": (_is_in_network, True),
    "NumericNotEquals": (_compare_read(float, operator.eq), True),
    "DateNotEquals": (_compare_read(_read_moment, operator.eq), True),
    **{f"Numeric{name}": (_compare_read(float, compare), False) for name, compare in _ORDER.items()},
    **{f"Date{name}": (_compare_read(_read_moment, compare), False) for name, compare in _ORDER.items()},
}
