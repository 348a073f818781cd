"""End of a forked program, without taking apart what was imported before.

At its end, an interpreter takes all its modules apart, and the C libraries destroy their own objects. In a fork of a
large process this copies most of its memory, which takes longer than a short training. Here only what the program
itself has made is taken apart, in Python's order. Where that could be told from Python's own end, nothing is done and
Python ends the process.
"""

# The program runs with the oldest Python of any image.
# ruff: noqa: BLE001, PTH123, S110, SIM105

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import sys
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

_STANDARD = (0, 1, 2)


def end_process(code: int, imported: Collection[str], libraries: Collection[str]) -> None:
    """End this process; return if only Python's own end does what it would do.

    Args:
        code: the exit code.
        imported: names of the modules that were imported before the fork.
        libraries: shared libraries that were loaded before the fork.
    """
    run_exit_handlers()
    flush_streams()
    # A thread that still runs would miss what is taken apart. A C library of the program's own may have to say or to
    # write something at its end.
    if len(sys._current_frames()) == 1 and not has_own_library(libraries):  # noqa: SLF001 - documented, for debuggers
        drop_modules(imported)
        close_files()
        packages = {name.partition(".")[0] for name in imported}
        if not has_finalizer(packages - {*sys.stdlib_module_names, "__main__"}):
            flush_streams()
            ctypes.CDLL(None).fflush(None)
            os._exit(code & 0xFF)
    gc.unfreeze()


def run_exit_handlers() -> None:
    """Wait for threads, and call what is registered in `atexit`, as Python does."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - Python does the same at its end
    try:
        atexit._run_exitfuncs()  # noqa: SLF001
    except BaseException:
        pass  # printed already


def flush_streams() -> None:
    """Flush standard output and standard error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed by the program


def read_libraries() -> set[str]:
    """Return the files of which this process has executable pages."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        fields = (line.rstrip("\n").split(maxsplit=5) for line in maps)
        return {each[5] for each in fields if len(each) == 6 and "x" in each[1] and each[5].startswith("/")}


def has_own_library(known: Collection[str]) -> bool:
    """Return whether a shared library was loaded after the fork from elsewhere than the interpreter's environment."""
    homes = tuple(f"{os.path.realpath(each)}/" for each in (sys.prefix, sys.base_prefix))
    return any(not path.startswith(homes) for path in read_libraries() - set(known))


def drop_modules(imported: Collection[str]) -> None:
    """Take the program's own modules apart: drop all, then clear those that something still refers to."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    names = [name for name in sys.modules if name not in imported or name == "__main__"]
    modules = [sys.modules.pop(name) for name in names]
    left = [weakref.ref(each) for each in modules if isinstance(each, types.ModuleType)]
    modules.clear()
    gc.collect()
    for reference in reversed(left):
        if (found := reference()) is not None:
            clear_module(vars(found))
            del found
    gc.collect()


def clear_module(names: dict[str, Any]) -> None:
    """Set the names of a module to None, in Python's order."""
    for private in (True, False):
        for name in list(names):
            if (name.startswith("_") and not name.startswith("__")) == private and name != "__builtins__":
                names[name] = None


def close_files() -> None:
    """Close open files of Python that something still refers to, as their own end does."""
    # The objects from before the fork are not among these.
    for each in gc.get_objects():
        if isinstance(each, io.IOBase):
            try:
                if each.closed or each.fileno() not in _STANDARD:
                    each.close()
            except Exception:
                pass


def has_finalizer(packages: Collection[str]) -> bool:
    """Return whether an object made after the fork has a `__del__` that is not of one of these packages."""
    kinds = {type(each) for each in gc.get_objects()}
    finalizers = {getattr(kind, "__del__", None) for kind in kinds}
    return any(hasattr(each, "__code__") and _find_package(each) not in packages for each in finalizers)


def _find_package(function: Any) -> str:
    """Return the package that a function is of."""
    return str(function.__module__ or "").partition(".")[0]
