"""Conditions of policy statements, with the operators of IAM.

    {"StringNotEquals": {"s3:x-amz-server-side-encryption": ["AES256", "aws:kms"]}}

Operators and keys of a statement are connected by and, the values of a key by or. A key that a request does not have
equals nothing, so that only a negated operator holds.
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
# A variable with one of these names is the letter itself; a mark before it says that it is no wildcard.
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
    """A condition depends on a key that nobody here can know; the text is the key."""


def is_operator(name: str) -> bool:
    """Whether IAM has a condition operator of this name."""
    _, base, _ = _split_operator(name)
    return base == "Null" or base in _TESTS


def conditions_hold(
    conditions: Mapping[str, Mapping[str, Any]], find_values: Callable[[str], Sequence[str] | None]
) -> bool:
    """Tell whether all conditions of a statement hold.

    Args:
        conditions: by operator and key; every operator is one of IAM's.
        find_values: returns the values that the request has of a key in small letters, None where it has no such key.
            It raises UnknowableKeyError.

    Raises:
        UnknowableKeyError: it cannot be told.
    """
    tests = [(name, key, wanted) for name, keys in conditions.items() for key, wanted in keys.items()]
    unknowable: UnknowableKeyError | None = None
    for name, key, wanted in tests:
        try:
            if not _holds(name, find_values(key.lower()), list(_list_texts(wanted, find_values))):
                return False  # whatever the others are
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
    """List the values of a condition with their policy variables filled in; one whose variable has no value is none."""
    for each in wanted if isinstance(wanted, list) else [wanted]:
        text = str(each).lower() if isinstance(each, bool) else str(each)
        values = {
            name: [_MARK + name] if name in _LETTERS else find_values(name.lower()) for name in _VARIABLE.findall(text)
        }
        if all(values.values()):
            yield _VARIABLE.sub(lambda match, known=values: known[match[1]][0], text)  # type: ignore[misc]


def _is_like(wanted: str, value: str) -> bool:
    """Match the wildcards ``*`` and ``?``, which are letters after a mark."""
    pieces = re.findall(f"{_MARK}?.", wanted, re.DOTALL)
    expression = "".join({"*": ".*", "?": "."}.get(piece, re.escape(piece[-1])) for piece in pieces)
    return re.fullmatch(expression, value, re.DOTALL) is not None


def _is_like_arn(wanted: str, value: str) -> bool:
    parts, found = wanted.split(":", 5), value.split(":", 5)
    return len(parts) == len(found) and all(map(_is_like, parts, found))


def _compare_read(read: Callable[[str], Any], compare: Callable[[Any, Any], bool]) -> Test:
    """Build a test of what texts stand for; a text that stands for nothing fits nothing."""

    def test(wanted: str, value: str) -> bool:
        try:
            return compare(read(value), read(wanted))
        except ValueError:
            return False

    return test


def _read_moment(text: str) -> datetime:
    """Read a time in ISO 8601 or in seconds since 1970."""
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


# By operator: the test of a wanted value and one of the request, and whether the operator holds where none fits.
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
