"""Placeholders for names of upstream that this library does not implement."""

from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError


def make_unsupported(name: str, reason: str) -> type:
    """Return a class that can be imported, and whose use raises SMDebugNotImplementedError with the reason.

    Scripts import many names that they never use.
    """
    sentence = f"{name} is not supported: {reason}"

    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise SMDebugNotImplementedError(sentence)

    return type(name, (), {"__init__": refuse, "__doc__": sentence})
