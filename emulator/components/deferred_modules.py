"""Modules that are imported at the start and needed in few requests."""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

# Of moto: certificates of IAM, files of recorded answers, which moto's own library for tests reads, and XML in requests
# to S3. Of the docker package: engines behind SSH, and archives. Of ours: regular expressions, and retries (with
# tornado, where that is installed).
_DEFERRED = ("cryptography.x509", "yaml", "xml.dom.minidom", "paramiko", "regex", "tenacity", "tarfile")
# Those that every job needs.
_OF_JOBS = ("regex", "tenacity")


class _DeferredModule(ModuleType):
    """Stands for a module in ``sys.modules``; imports it when an attribute is first needed."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec  # which each import statement reads
        self._import = threading.RLock()

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        with self._import:
            if sys.modules.get(name) is self:
                del sys.modules[name]
            module = importlib.import_module(name)
        return getattr(module, attribute)


def defer_modules() -> None:
    """Defer the import of these modules until they are used. Those that are imported already stay as they are."""
    for name in _DEFERRED:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = _DeferredModule(spec)


def preload_modules() -> None:
    """Import what jobs need, so that the first one does not wait for it."""
    for name in _OF_JOBS:
        importlib.import_module(name).__file__  # noqa: B018 - reading it imports a deferred module
