"""Start-up of Python under the variables of ``smdebug-emulator run`` and ``env``.

Under both, the SageMaker SDK looks at jobs more often. Under ``run``, AWS clients are redirected as well: their
requests reach the emulator, and none reaches AWS.

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
    from typing import Any

_ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL"
_ONLY_VARIABLE = "SMDEBUG_EMULATOR_ONLY"
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


def _load_beside(name: str) -> Any:
    """Load a module of this folder without a name that would hide a module of the user's."""
    spec = PathFinder.find_spec(name, [os.path.dirname(os.path.abspath(__file__))])  # noqa: PTH100, PTH120 - slow to import
    if spec is None or spec.loader is None:
        raise ImportError(f"{name}.py is missing beside {__file__}: install smdebug-emulator again.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _import_hidden() -> None:
    """Import the ``sitecustomize`` that this one hides, as Python would have."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _patch_clients() -> None:
    polls = _load_beside("short_polls")
    patches = dict.fromkeys(polls.WAITING_MODULES, polls.shorten_polls)
    if os.environ.get(_ONLY_VARIABLE):
        patches.update({"socket": refuse_aws, "botocore.session": redirect_clients})
    _load_beside("import_patches").patch_modules(patches)


if os.environ.get(_ENDPOINT_VARIABLE):
    _patch_clients()
_import_hidden()
