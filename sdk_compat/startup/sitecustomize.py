"""Start-up of Python under ``smdebug-emulator run``: AWS clients redirected.

Their requests reach the emulator, and none reaches AWS.

Its folder is the first of PYTHONPATH, so that Python imports it when it starts, whichever environment it is of. Clients
that name no endpoint read AWS_ENDPOINT_URL; those that are given one of AWS's own get the emulator's instead. A name of
AWS's that is looked up nevertheless, as by code that sends requests itself, is refused.

It imports what any start of Python has imported, and runs under each version that boto3 does.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def is_of_aws(host: Any) -> bool:
    """Whether a host's name is one of AWS's."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return name.rstrip(".").lower().endswith(_AWS_DOMAINS)


def redirect_clients(module: Any) -> None:
    """Let ``botocore.session`` make clients of the emulator where they are given an endpoint of AWS's."""
    from functools import wraps
    from inspect import signature
    from urllib.parse import urlsplit

    create = module.Session.create_client
    parameters = signature(create)

    @wraps(create)
    def create_client(*args: Any, **options: Any) -> Any:
        bound = parameters.bind(*args, **options)
        if is_of_aws(urlsplit(bound.arguments.get("endpoint_url") or "").hostname or ""):
            bound.arguments["endpoint_url"] = os.environ[_ENDPOINT_VARIABLE]
        return create(*bound.args, **bound.kwargs)

    module.Session.create_client = create_client


def refuse_aws(module: Any) -> None:
    """Let ``socket`` look up no name of AWS's."""
    look_up = module.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if is_of_aws(host):
            text = "smdebug-emulator run keeps this program off AWS: ask the emulator instead, at "
            raise module.gaierror(module.EAI_NONAME, text + os.environ[_ENDPOINT_VARIABLE])
        return look_up(host, *args, **options)

    module.getaddrinfo = getaddrinfo


class _PatchingLoader:
    """Loads a module as its own loader does, then changes it."""

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
    """Finds the modules that are to be changed, and leaves every other alone."""

    patches = {"socket": refuse_aws, "botocore.session": redirect_clients}  # noqa: RUF012 - a constant

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        patch = cls.patches.get(name)
        spec = None if patch is None else PathFinder.find_spec(name, path, target)
        if spec is not None:
            loader: Any = _PatchingLoader(spec.loader, patch)
            spec.loader = loader
        return spec


def _import_hidden() -> None:
    """Import the ``sitecustomize`` that this one hides, as Python would have."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if os.environ.get(_ENDPOINT_VARIABLE):
    for _name, _patch in _PatchingFinder.patches.items():
        if _name in sys.modules:
            _patch(sys.modules[_name])
    sys.meta_path.insert(0, _PatchingFinder)
_import_hidden()
