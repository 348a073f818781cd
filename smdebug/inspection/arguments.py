"""Parsing of the arguments of questions, which come from the query of a request."""

import re
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys

Arguments = Mapping[str, Any]

# The maximum number of tensors in one answer.
_MOST_NAMES = 12


def read_count(arguments: Arguments, name: str, default: int, most: int) -> int:
    """Parse a count.

    Raises:
        SMDebugValueError: the argument is not an integer from 1 to `most`.
    """
    count = arguments.get(name, default)
    if not str(count).isdecimal() or not 0 < int(count) <= most:
        raise SMDebugValueError(f"{name} is {str(count)[:40]!r}: use an integer from 1 to {most}.")
    return int(count)


def read_names(arguments: Arguments) -> list[str]:
    """Parse the names of tensors.

    Raises:
        SMDebugValueError: there are no names, or too many.
    """
    names = list(dict.fromkeys(map(str, arguments.get("tensors", ()))))
    if not 0 < len(names) <= _MOST_NAMES:
        raise SMDebugValueError(f"{len(names)} tensors are asked for: name 1 to {_MOST_NAMES}.")
    return names


def read_mode(arguments: Arguments) -> ModeKeys:
    """Parse a mode; GLOBAL by default.

    Raises:
        SMDebugValueError: the mode does not exist.
    """
    name = str(arguments.get("mode") or "GLOBAL")
    if name not in ModeKeys.__members__:
        raise SMDebugValueError(f"mode is {name!r}: use one of {', '.join(ModeKeys.__members__)}.")
    return ModeKeys[name]


def read_step(arguments: Arguments, name: str) -> int | None:
    """Parse a global step; None by default.

    Raises:
        SMDebugValueError: the argument is not a global step.
    """
    step = arguments.get(name)
    if step in (None, ""):
        return None
    if not str(step).isdecimal() or len(str(step)) > 18:
        raise SMDebugValueError(f"{name} is {str(step)[:40]!r}: use a global step.")
    return int(str(step))


def read_index(arguments: Arguments) -> list[int]:
    """Parse an index of several dimensions; empty by default.

    Raises:
        SMDebugValueError: the argument is not a list of integers.
    """
    text = str(arguments.get("index") or "")
    if text and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise SMDebugValueError(f"index is {text[:40]!r}: use integers separated by commas.")
    return [int(part) for part in text.split(",")] if text else []
