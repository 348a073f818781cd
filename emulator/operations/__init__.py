"""SageMaker operations: a module for each resource, a function for each operation.

The function's name is the operation's in snake case: ``def stop_training_job(request, context) -> response``. A
function that returns None passes the request to moto, which has the resource. ``validation`` checks create requests.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from emulator.operations.context import Context

    Handler = Callable[[dict[str, Any], Context], dict[str, Any] | None]

_NO_OPERATIONS = ("context", "members")
# Words of operations' names that the model writes in capitals, as in CreateAutoMLJob.
_ACRONYMS = {"ai": "AI", "ml": "ML"}


def find_operations() -> dict[str, Handler]:
    """Find every operation of this package by its name on the wire, e.g. ``CreateTrainingJob``.

    Raises:
        ValueError: a public function is not an operation, or two modules have the same operation.
    """
    found: dict[str, Handler] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg or module.name in _NO_OPERATIONS:
            continue
        for name, handler in _list_handlers(importlib.import_module(f"{__name__}.{module.name}")):
            if (wire_name := _wire_name(name)) in found:
                raise ValueError(f"emulator/operations/{module.name}.py: another module has {name}, too.")
            found[wire_name] = handler
    return dict(sorted(found.items()))


def _wire_name(name: str) -> str:
    return "".join(_ACRONYMS.get(word, word.capitalize()) for word in name.split("_"))


def _list_handlers(module: ModuleType) -> list[tuple[str, Handler]]:
    own: list[tuple[str, Handler]] = [
        (name, function)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]
    for name, function in own:
        if list(inspect.signature(function).parameters) != ["request", "context"]:
            raise ValueError(
                f"{module.__name__}.{name} is not an operation: give it the parameters (request, context), or make it "
                "private."
            )
    if not own:
        raise ValueError(f"{module.__name__} holds no operation: define <name>(request, context) in it.")
    return own
