"""Program of a spare container, which imports modules and waits.

A spare container runs this file with the interpreter of its image. The folder of the file also has a copy of
``warm_interpreter.py``, the file ``request.json`` with the modules to import, and a Unix socket of the back end. The
two exchange one JSON document a line:

    ready                                  the imports are done
    {"argv": [...], "environment": {...}}  the program that a new container would run; its folders are filled
    begun                                  the file ``socket`` is removed; nothing else of this program runs

The socket closes when the emulator ends in any way. A spare container that has not begun then ends, too.
"""

# The program runs with the Python of the image, and imports as little as possible.
# ruff: noqa: PTH118, PTH120, PTH123, PTH107

import json
import os
import socket
import sys
import types
from importlib.machinery import SourceFileLoader
from typing import Any

_FOLDER = os.path.dirname(__file__)  # an absolute path
_SOCKET = os.path.join(_FOLDER, "socket")
# Space for the variables of the container's program, which /proc shows; the most that Linux allows one variable.
_SPACE_BYTES = 120 * 1024


def load_shared() -> Any:
    """Return the module of warm interpreters, which no program finds among its imported modules."""
    path = os.path.join(_FOLDER, "warm_interpreter.py")
    module = types.ModuleType("warm_interpreter")
    module.__file__ = path
    SourceFileLoader("warm_interpreter", path).exec_module(module)
    return module


def wait_for_program(shared: Any) -> tuple[Any, list[str], dict[str, str]]:
    """Do the imports, and wait for a program. Return the interpreter, the command and the variables of the program.

    What the imports print goes to a file: the container's log begins with the program.
    """
    with open(os.path.join(_FOLDER, "request.json"), encoding="utf-8") as file:
        request = json.load(file)
    outputs = [os.dup(number) for number in (1, 2)]
    with open(os.path.join(_FOLDER, "imports.log"), "ab") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    control = socket.socket(socket.AF_UNIX)
    control.connect(_SOCKET)
    warm = shared.WarmInterpreter(request, control.fileno(), *outputs)
    lines = control.makefile("rw", encoding="utf-8")
    lines.write("ready\n")
    lines.flush()
    asked = json.loads(lines.readline() or "null")
    if asked is None:
        os._exit(0)
    sys.stdout.flush()
    sys.stderr.flush()
    for number, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, number)
    os.remove(_SOCKET)
    lines.write("begun\n")
    lines.close()
    control.close()
    return warm, asked["argv"], {**warm.variables, **asked["environment"]}


def main() -> None:
    """Wait for a program, and become it. The interpreter's end is that of the program."""
    shared = load_shared()
    if shared.SPACE_VARIABLE not in os.environ:
        argv = [sys.executable, *sys.argv]
        os.execve(sys.executable, argv, {**os.environ, shared.SPACE_VARIABLE: "x" * _SPACE_BYTES})  # noqa: S606
    warm, argv, environment = wait_for_program(shared)
    process: Any = None
    script = None
    try:
        warm.become(argv, environment)
    except shared.ProcessForkedError as forked:
        process = forked
    try:
        code = shared.run_program(warm, process)
    except shared.ScriptForkedError as forked_script:
        script = forked_script
    if script is not None:
        code = shared.run_script(warm, script)
    del process, script
    warm.end(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
