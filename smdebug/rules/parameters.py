"""Rule parameters: declaration, conversion from text, and checks."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smdebug.exceptions import SMDebugValueError

_NOTHING = (None, "", "None", "none")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a rule.

    Attributes:
        name: as it stands in RuleParameters.
        default: the value where none is given; where it is None, the texts "" and "None" mean None too.
        convert: makes the value of a text; ValueError if it cannot.
        expected: what a right value is, for the message.
    """

    name: str
    default: Any
    convert: Callable[[Any], Any]
    expected: str


def number(name: str, default: float | None, minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Return a number within bounds."""
    return Parameter(name, default, _within(float, minimum, maximum), f"a number{_describe_bounds(minimum, maximum)}")


def integer(name: str, default: int | None, minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Return a whole number within bounds."""
    expected = f"a whole number{_describe_bounds(minimum, maximum)}"
    return Parameter(name, default, _within(_to_int, minimum, maximum), expected)


def boolean(name: str, default: bool) -> Parameter:
    """Return True or False, in any case."""
    return Parameter(name, default, _to_bool, "True or False")


def texts(name: str) -> Parameter:
    """Texts separated by commas; None by default."""
    return Parameter(name, None, _to_texts, "names separated by commas")


def text(name: str, default: str) -> Parameter:
    """One text, as it is."""
    return Parameter(name, default, _to_text, "a text that is not empty")


def numbers(name: str, default: list[float], minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Numbers within bounds, separated by commas."""
    one = _within(float, minimum, maximum)
    expected = f"numbers{_describe_bounds(minimum, maximum)} separated by commas"
    return Parameter(name, default, lambda value: [one(part) for part in _to_texts(value)], expected)


def regex(name: str, default: str | None) -> Parameter:
    """Regexes separated by commas, to be found anywhere in a tensor's name."""
    return Parameter(name, default and _to_patterns(default), _to_patterns, "regular expressions separated by commas")


def choice(name: str, default: str | None, options: Sequence[str]) -> Parameter:
    """One of some words, in any case."""

    def convert(value: Any) -> str:
        word = str(getattr(value, "name", value)).strip().upper()
        if word not in options:
            raise ValueError(word)
        return word

    return Parameter(name, default, convert, f"one of {', '.join(options)}")


def convert_parameters(rule_name: str, declared: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every declared parameter, converted from what is given.

    Raises:
        SMDebugValueError: names that are not declared and values that cannot be converted, all in one message.
    """
    by_name = {parameter.name: parameter for parameter in declared}
    values = {name: parameter.default for name, parameter in by_name.items()}
    problems = []
    for name, value in given.items():
        parameter = by_name.get(name)
        if parameter is None:
            problems.append(f"there is no parameter {name!r}")
        elif not (parameter.default is None and value in _NOTHING):
            try:
                values[name] = parameter.convert(value)
            except (ValueError, TypeError, OverflowError, re.error):
                problems.append(f"parameter {name} is {value!r}, expected {parameter.expected}")
    if problems:
        known = ", ".join(by_name) or "none"
        raise SMDebugValueError(f"Rule {rule_name}: {'; '.join(problems)}. Its parameters are: {known}.")
    return values


def _describe_bounds(minimum: float, maximum: float) -> str:
    if math.isinf(maximum):
        return "" if math.isinf(minimum) else f" of at least {minimum:g}"
    return f" of at most {maximum:g}" if math.isinf(minimum) else f" from {minimum:g} to {maximum:g}"


def _within(convert: Callable[[Any], Any], minimum: float, maximum: float) -> Callable[[Any], Any]:
    def convert_and_check(value: Any) -> Any:
        converted = convert(value)
        # NaN lies within no bounds: it fails this comparison, and passes the opposite one.
        if not minimum <= converted <= maximum:
            raise ValueError(value)
        return converted

    return convert_and_check


def _to_int(value: Any) -> int:
    converted = float(value)
    if not converted.is_integer():
        raise ValueError(value)
    return int(converted)


def _to_bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in ("true", "false"):
        raise ValueError(value)
    return word == "true"


def _to_text(value: Any) -> str:
    stripped = str(value).strip()
    if not stripped:
        raise ValueError(value)
    return stripped


def _to_texts(value: Any) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    stripped = [str(part).strip() for part in parts if str(part).strip()]
    if not stripped:
        raise ValueError(value)
    return stripped


def _to_patterns(value: Any) -> list[str]:
    # The comma of a repetition, as in \d{1,2}, separates nothing.
    patterns = _to_texts(re.split(r",(?!\d*\})", value) if isinstance(value, str) else value)
    for pattern in patterns:
        re.compile(pattern)
    return patterns
