"""Start of smdebug in a user's image, from the library that is mounted.

A folder on PYTHONPATH has no .pth files that Python reads, so this module runs smdebug's. It works in any Python 3.
"""

import sys
from pathlib import Path

_LIBRARY = Path(__file__).resolve().parent
_OLDEST = (3, 10)


def _start_library() -> None:
    # Packages that smdebug needs and the image may lack: the image's own come first.
    sys.path.append(str(_LIBRARY / "fallbacks"))
    if sys.version_info[:2] < _OLDEST:
        # An import of smdebug by the script finds the image's own, if there is one.
        sys.path[:] = _list_elsewhere()
        if Path("/opt/ml/input/config/debughookconfig.json").exists():
            version = "{}.{}".format(*sys.version_info[:2])
            sys.stderr.write(f"smdebug: nothing is captured: the image has Python {version}, and this needs 3.10\n")
        return
    exec((_LIBRARY / "smdebug_autoload.pth").read_text(encoding="utf-8"), {})  # noqa: S102 - as Python does


def _run_replaced_module() -> None:
    """Run the image's own sitecustomize, which this module hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", _list_elsewhere())
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _list_elsewhere() -> "list[str]":
    return [path for path in sys.path if Path(path).resolve() != _LIBRARY]


for _step in (_start_library, _run_replaced_module):
    try:
        _step()
    except Exception as error:  # noqa: BLE001 - the job's own program runs without it
        sys.stderr.write(f"smdebug: {_step.__name__[1:]} failed: {type(error).__name__}: {error}\n")
