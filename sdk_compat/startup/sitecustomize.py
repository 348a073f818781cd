"""Start-up of Python under the variables of ``smdebug-emulator run`` and ``env``.

Under both, the SageMaker SDK polls jobs more often, and checks its own schemas once, and botocore reads its data files
once. Under ``run``, AWS clients are redirected as well: their requests reach the emulator, and none reaches AWS.

The folder of this module is the first in PYTHONPATH, so Python imports it at start-up in every virtual environment.
Clients without an explicit endpoint read AWS_ENDPOINT_URL. For clients with an explicit endpoint of AWS, it is replaced
by the emulator's. Other code that looks up a host name of AWS gets an error.

This module imports only modules that Python's start-up has already imported, and supports the same Python versions as
boto3.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

_ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"
_ONLY_VARIABLE = "SMDEBUG_EMULATOR_ONLY"
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def is_of_aws(host: Any) -> bool:
    """Return whether a host name belongs to AWS."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return name.rstrip(".").lower().endswith(_AWS_DOMAINS)


def redirect_clients(module: Any) -> None:
    """Patch ``botocore.session`` so that clients with an explicit endpoint of AWS use the emulator instead."""
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
    """Patch ``socket`` so that looking up a host name of AWS fails."""
    look_up = module.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        if is_of_aws(host):
            text = "smdebug-emulator run keeps this program off AWS: ask the emulator instead, at "
            raise module.gaierror(module.EAI_NONAME, text + os.environ[_ENDPOINT_VARIABLE])
        return look_up(host, *args, **options)

    module.getaddrinfo = getaddrinfo


def _load_beside(name: str) -> Any:
    """Load a module of this folder without adding it to ``sys.modules``, where it could hide a module of the user."""
    spec = PathFinder.find_spec(name, [os.path.dirname(os.path.abspath(__file__))])  # noqa: PTH100, PTH120 - slow to import
    if spec is None or spec.loader is None:
        raise ImportError(f"{name}.py is missing beside {__file__}: install smdebug-emulator again.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _import_hidden() -> None:
    """Import the user's ``sitecustomize``, which this module hides."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _patch_clients() -> None:
    polls = _load_beside("short_polls")
    schemas = _load_beside("checked_schemas")
    data_files = _load_beside("kept_data_files")
    patches = [
        (polls.WAITING_MODULES, polls.shorten_polls),
        (schemas.VALIDATING_MODULES, schemas.check_schemas_once),
        (data_files.READING_MODULES, data_files.keep_data_files),
    ]
    if os.environ.get(_ONLY_VARIABLE):
        patches += [(("socket",), refuse_aws), (("botocore.session",), redirect_clients)]
    _load_beside("import_patches").patch_modules(*patches)


if os.environ.get(_ENDPOINT_VARIABLE):
    _patch_clients()
_import_hidden()
