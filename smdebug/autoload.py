"""Automatic hooks: frameworks instrumented when a training job imports them.

When a script imports a framework as `<module>`, this module calls `install()` of `on_import_<module>.py` in the
framework's folder, which captures the framework's tensors.

`autoload.pth` imports this module when Python starts, but only if a job's hook config may exist. The module itself
imports no framework: it waits until the script does.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_DEFAULT_CONFIG_FILE = "/opt/ml/input/config/debughookconfig.json"
_CAPTURE_PREFIX = "on_import_"


class _LoaderWithCapture(Loader):
    """Loads a framework with its own loader, then installs the capture."""

    def __init__(self, loader: Loader, capture: str) -> None:
        self._loader = loader
        self._capture = capture

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _run_safely(lambda: _install(self._capture))


class _CaptureFinder(MetaPathFinder):
    """Finds each framework before other finders do, once, and ignores all other modules."""

    def __init__(self, captures: dict[str, str]) -> None:
        """Initialize with the capture module of each framework, by the module name that scripts import."""
        self._captures = captures

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        capture = self._captures.get(fullname)
        if capture is None or path is not None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return None
        if spec.loader is None:
            # The remains of an aborted installation or of an uninstalled package. Leave the import to Python.
            del self._captures[fullname]
            _say_nothing_is_captured(
                f"{fullname} is a folder without a module, {list(spec.submodule_search_locations or ())}"
            )
            return None
        spec.loader = _LoaderWithCapture(spec.loader, capture)
        return spec


def start() -> None:
    """Wait for the import of a framework if this process belongs to a job with a hook config."""
    config = Path(os.environ.get("SMDEBUG_CONFIG_FILE_PATH") or _DEFAULT_CONFIG_FILE)
    if not config.is_file() or any(isinstance(finder, _CaptureFinder) for finder in sys.meta_path):
        return
    captures = _find_captures()
    sys.meta_path.insert(0, _CaptureFinder(captures))
    for framework in captures.keys() & sys.modules.keys():  # those that a warm interpreter has imported
        _run_safely(partial(_install, captures[framework]))


def _find_captures() -> dict[str, str]:
    return {
        path.stem.removeprefix(_CAPTURE_PREFIX): f"smdebug.{path.parent.name}.{path.stem}"
        for path in Path(__file__).parent.glob(f"*/{_CAPTURE_PREFIX}*.py")
    }


def _install(capture: str) -> None:
    from importlib import import_module

    from smdebug.moments import FRAMEWORK, report_moment

    import_module(capture).install()
    report_moment(FRAMEWORK)


def _run_safely(action: Callable[[], None]) -> None:
    """Run an action; if it fails, write one line to standard error and let the script continue."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - a script that trains without smdebug trains with it
        _say_nothing_is_captured(f"{type(error).__name__}: {error}")


def _say_nothing_is_captured(why: str) -> None:
    sys.stderr.write(f"smdebug: nothing is captured in process {os.getpid()}: {why}\n")


_run_safely(start)
