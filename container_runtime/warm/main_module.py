"""Programs run as ``__main__`` by an interpreter that has started already.

Their errors, exit codes and messages are those of a new interpreter.
"""

# The program runs with the oldest Python of any image.
# ruff: noqa: PTH114, PTH120, PTH123, BLE001

import os
import runpy
import signal
import sys
from importlib.machinery import SourceFileLoader


def find_folder(path: str) -> str:
    """Return the folder in which a script's imports are looked for first."""
    return os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path)


def run(option: str, program: str) -> int:
    """Run a module (option ``-m``), code (``-c``) or a script (no option); return its exit code."""
    try:
        if option == "-m":
            runpy._run_module_as_main(program)  # type: ignore[attr-defined]  # noqa: SLF001 - `python -m` calls it
        elif option == "-c":
            _execute(program, "<string>")
        else:
            with open(program, "rb") as file:
                source = file.read()
            loader = SourceFileLoader("__main__", program)
            sys.modules["__main__"].__dict__.update(__file__=program, __cached__=None, __loader__=loader)
            _execute(source, program)
    except SystemExit as end:
        return read_exit_code(end)
    except BaseException as error:
        report_error(error)
        return 1
    return 0


def _execute(source: str | bytes, name: str) -> None:
    names = sys.modules["__main__"].__dict__
    names.update(__builtins__=sys.modules["builtins"], __annotations__={})
    exec(compile(source, name, "exec", dont_inherit=True), names)  # noqa: S102 - it is the job


def read_exit_code(end: SystemExit) -> int:
    """Return the exit code of a program that raised SystemExit; print its message, if it has one."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)  # noqa: T201 - Python does the same
    return 1


def report_error(error: BaseException) -> None:
    """Report an error that a program raised and did not catch, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.with_traceback(trace)
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
