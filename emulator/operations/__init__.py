"""SageMaker's operations, one file each: ``<name>.py`` holds ``def <name>(request, context) -> response``.

An operation that returns None leaves the request to moto, whose resource it is about.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.operations.context import Context

    Handler = Callable[[dict[str, Any], Context], dict[str, Any] | None]


def find_operations() -> dict[str, Handler]:
    """Every operation of this folder by its name on the wire, e.g. ``CreateTrainingJob``.

    Raises:
        ValueError: a file that does not hold the function it is named after.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "context")
    return {_wire_name(name): _load(name) for name in names}


def _wire_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _load(name: str) -> Handler:
    handler = getattr(importlib.import_module(f"{__name__}.{name}"), name, None)
    if not callable(handler) or list(inspect.signature(handler).parameters) != ["request", "context"]:
        raise ValueError(f"emulator/operations/{name}.py has to hold a function {name}(request, context).")
    found: Handler = handler
    return found
