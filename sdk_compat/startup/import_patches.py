"""Changes of modules when they are imported.

This module imports only modules that Python's start-up has already imported.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class _PatchingLoader:
    """Loads a module with its original loader, then patches it."""

    def __init__(self, loader: Any, patch: Any) -> None:
        self._loader, self._patch = loader, patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._patch(module)


class _PatchingFinder:
    """Finds the modules to patch, and ignores all others."""

    def __init__(self, patches: Mapping[str, Callable[[Any], None]]) -> None:
        self._patches = patches

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        patch = self._patches.get(name)
        spec = None if patch is None else PathFinder.find_spec(name, path, target)
        if spec is not None:
            loader: Any = _PatchingLoader(spec.loader, patch)
            spec.loader = loader
        return spec


def patch_modules(patches: Mapping[str, Callable[[Any], None]]) -> None:
    """Apply each patch to its module: now if the module is imported, else when it is imported."""
    for name, patch in patches.items():
        if name in sys.modules:
            patch(sys.modules[name])
    sys.meta_path.insert(0, _PatchingFinder(patches))
