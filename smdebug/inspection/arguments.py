"""What a question is asked with, as it comes from the query of a request."""

import re
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys

Arguments = Mapping[str, Any]

# What one answer is of at most.
_MOST_NAMES = 12


def read_count(arguments: Arguments, name: str, default: int, most: int) -> int:
    """Read how many of something are wanted.

    Raises:
        SMDebugValueError: it is no whole number from 1 to `most`.
    """
    count = arguments.get(name, default)
    if not str(count).isdecimal() or not 0 < int(count) <= most:
        raise SMDebugValueError(f"{name} is {str(count)[:40]!r}: give a whole number from 1 to {most}.")
    return int(count)


def read_names(arguments: Arguments) -> list[str]:
    """Read the names of tensors.

    Raises:
        SMDebugValueError: there are none, or too many.
    """
    names = list(dict.fromkeys(map(str, arguments.get("tensors", ()))))
    if not 0 < len(names) <= _MOST_NAMES:
        raise SMDebugValueError(f"Give the names of 1 to {_MOST_NAMES} tensors, not {len(names)}.")
    return names


def read_mode(arguments: Arguments) -> ModeKeys:
    """Read a mode; GLOBAL where none is given.

    Raises:
        SMDebugValueError: there is no such mode.
    """
    name = str(arguments.get("mode") or "GLOBAL")
    if name not in ModeKeys.__members__:
        raise SMDebugValueError(f"mode is {name!r}: give one of {', '.join(ModeKeys.__members__)}.")
    return ModeKeys[name]


def read_step(arguments: Arguments, name: str) -> int | None:
    """Read a global step; None where none is given.

    Raises:
        SMDebugValueError: it is none.
    """
    step = arguments.get(name)
    if step in (None, ""):
        return None
    if not str(step).isdecimal() or len(str(step)) > 18:
        raise SMDebugValueError(f"{name} is {str(step)[:40]!r}: give a global step.")
    return int(str(step))


def read_index(arguments: Arguments) -> list[int]:
    """Read an index of several dimensions; none of any where it is not given.

    Raises:
        SMDebugValueError: it is no list of whole numbers.
    """
    text = str(arguments.get("index") or "")
    if text and not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise SMDebugValueError(f"index is {text[:40]!r}: give whole numbers with commas between them.")
    return [int(part) for part in text.split(",")] if text else []
