"""Program that imports modules once, and runs each script in a fork of itself.

Each line of its input names a script with its arguments, its environment and the files for its output; each line of
its output is the exit code of one.
"""

import gc
import importlib
import json
import os
import sys
import types
from typing import Any

from container_runtime.warm.main_module import run


def become_script(request: dict[str, Any]) -> None:
    """End this process as an interpreter ends that was started with the script."""
    for number, path in enumerate((os.devnull, request["stdout"], request["stderr"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [request["script"], *request["arguments"]]
    sys.path[0] = os.path.dirname(request["script"])  # noqa: PTH120 - as Python has it
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.exit(run("", request["script"]))


gc.disable()
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.collect()
gc.freeze()
gc.enable()
for line in sys.stdin:
    process = os.fork()
    if not process:
        become_script(json.loads(line))
    _, status = os.waitpid(process, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
    sys.stdout.flush()
