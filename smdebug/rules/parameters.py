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
        name: its key in RuleParameters.
        default: the value if none is given. If it is None, the texts "" and "None" also mean None.
        convert: converts a text to the value; raises ValueError for an invalid text.
        expected: description of a valid value, for the error message.
    """

    name: str
    default: Any
    convert: Callable[[Any], Any]
    expected: str


def number(name: str, default: float | None, minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Declare a number within bounds."""
    return Parameter(name, default, _within(float, minimum, maximum), f"a number{_describe_bounds(minimum, maximum)}")


def integer(name: str, default: int | None, minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Declare a whole number within bounds."""
    expected = f"a whole number{_describe_bounds(minimum, maximum)}"
    return Parameter(name, default, _within(_to_int, minimum, maximum), expected)


def boolean(name: str, default: bool) -> Parameter:
    """Declare True or False; case does not matter."""
    return Parameter(name, default, _to_bool, "True or False")


def texts(name: str) -> Parameter:
    """Declare texts separated by commas; None by default."""
    return Parameter(name, None, _to_texts, "names separated by commas")


def text(name: str, default: str) -> Parameter:
    """Declare one text, which is not converted."""
    return Parameter(name, default, _to_text, "a text that is not empty")


def numbers(name: str, default: list[float], minimum: float = -math.inf, maximum: float = math.inf) -> Parameter:
    """Declare numbers within bounds, separated by commas."""
    one = _within(float, minimum, maximum)
    expected = f"numbers{_describe_bounds(minimum, maximum)} separated by commas"
    return Parameter(name, default, lambda value: [one(part) for part in _to_texts(value)], expected)


def regex(name: str, default: str | None) -> Parameter:
    """Declare regexes separated by commas, each of which may match anywhere in a tensor's name."""
    return Parameter(name, default and _to_patterns(default), _to_patterns, "regular expressions separated by commas")


def choice(name: str, default: str | None, options: Sequence[str]) -> Parameter:
    """Declare one of several words; case does not matter."""

    def convert(value: Any) -> str:
        word = str(getattr(value, "name", value)).strip().upper()
        if word not in options:
            raise ValueError(word)
        return word

    return Parameter(name, default, convert, f"one of {', '.join(options)}")


def convert_parameters(rule_name: str, declared: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every declared parameter, converted from the given ones.

    Raises:
        SMDebugValueError: undeclared names and invalid values, all in one message.
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
        # NaN is within no bounds: it fails this comparison, but would pass the negated one.
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
    # The comma inside a repetition, such as \d{1,2}, does not separate regexes.
    patterns = _to_texts(re.split(r",(?!\d*\})", value) if isinstance(value, str) else value)
    for pattern in patterns:
        re.compile(pattern)
    return patterns
