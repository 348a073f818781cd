"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def import_late(package: str, homes: Mapping[str, tuple[str, str]], name: str) -> Any:
    """Import a name for the `__getattr__` of a package, and keep it there.

    Args:
        package: the package.
        homes: module and name there of each of the package's names that are imported late.
        name: the name.

    Raises:
        AttributeError: the package has no such name.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module, attribute = homes[name]
    found = getattr(import_module(module), attribute)
    setattr(sys.modules[package], name, found)
    return found
