"""Built-in rules, one module each: a pure function and a thin class.

The class has the name that users give.

A file of this folder is a rule: `find_built_in_rule("DeadRelu")` imports dead_relu.py and takes its class DeadRelu. A
rule costs nothing before it is used. After a new one, `make pages` renews the pages and lists made from them.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.built_in_rule import BuiltInRule

if TYPE_CHECKING:
    from types import ModuleType


def __getattr__(name: str) -> type[BuiltInRule]:
    # Supports `from smdebug.rules.builtin import DeadRelu` without a list of names to maintain.
    if name[:1].isupper():
        try:
            return find_built_in_rule(name)
        except SMDebugValueError as error:
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_built_in_rule(name: str) -> type[BuiltInRule]:
    """Return the class of a built-in rule.

    Raises:
        SMDebugValueError: there is no rule of this name; the message lists the existing ones.
    """
    wanted = name.lower()
    for stem in _list_files():
        if stem.replace("_", "") == wanted:
            found = _find_class(import_module(f"{__name__}.{stem}"))
            if found.__name__ == name:
                return found
    raise SMDebugValueError(f"There is no built-in rule {name!r}. The built-in rules are: {', '.join(list_names())}.")


def list_names() -> list[str]:
    """Names of all built-in rules, sorted."""
    return sorted(_find_class(import_module(f"{__name__}.{stem}")).__name__ for stem in _list_files())


def _list_files() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def _find_class(module: "ModuleType") -> type[BuiltInRule]:
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BuiltInRule) and value.__module__ == module.__name__
    )
    return found
