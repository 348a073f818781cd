"""Changes of modules when they are imported.

This module imports only modules that Python's start-up has already imported.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class _PatchingLoader:
    """Loads a module with its original loader, then patches it."""

    def __init__(self, loader: Any, patches: list[Any]) -> None:
        self._loader, self._patches = loader, patches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        for patch in self._patches:
            patch(module)


class _PatchingFinder:
    """Finds the modules to patch, and ignores all others."""

    def __init__(self, patches: Mapping[str, list[Any]]) -> None:
        self._patches = patches

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        patches = self._patches.get(name)
        spec = None if patches is None else PathFinder.find_spec(name, path, target)
        if spec is not None and patches is not None:
            loader: Any = _PatchingLoader(spec.loader, patches)
            spec.loader = loader
        return spec


def patch_modules(*patches: tuple[Iterable[str], Callable[[Any], None]]) -> None:
    """Apply each patch to its modules: now if a module is imported, else when it is imported.

    Args:
        patches: the names of modules, and what is called with each of them. A module may have several patches, which
            are applied in this order.
    """
    of_module: dict[str, list[Any]] = {}
    for names, patch in patches:
        for name in names:
            of_module.setdefault(name, []).append(patch)
            if name in sys.modules:
                patch(sys.modules[name])
    sys.meta_path.insert(0, _PatchingFinder(of_module))
