"""Program `train` of our images: AWS's training toolkit without TensorFlow.

Before it starts the user's script, the toolkit imports TensorFlow for the names of its exceptions. This takes seconds
in every job whose environment has TensorFlow. This program reads the same names from TensorFlow's source instead.
Everything else is the toolkit's code. The script runs in a separate process and imports TensorFlow itself if it needs
it.
"""

import ast
import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from smdebug.absent_modules import describe_absent, describe_absent_launcher, find_search_path
from smdebug.moments import SCRIPT, report_moment
from smdebug.mpi_launch import adapt_launcher

# Module, relative to TensorFlow's folder, whose class names the toolkit searches for in the script's output.
_ERRORS = "python/framework/errors_impl.py"
# Additional name in the toolkit's list, which no module of TensorFlow defines.
_XLA_ERROR = "XlaRuntimeError"


def main() -> None:
    """Run the toolkit, which ends the process."""
    process: Any = importlib.import_module("sagemaker_training.process")
    process.get_tensorflow_exception_classes = _without_import(process.get_tensorflow_exception_classes)
    # A warm interpreter gives this module to the programs that it forks.
    process.subprocess = _ScriptStarter(sys.modules.get("smdebug_emulator_scripts"))
    adapt_launcher(importlib.import_module("sagemaker_training.mpi"))
    if preloaded := sys.modules.get("smdebug.preloaded_botocore"):  # in a fork of a warm interpreter
        preloaded.use_preloaded_files()
    train = importlib.import_module("sagemaker_training.cli.train")
    # Modules exist until the process ends, so garbage collection can skip them.
    gc.freeze()
    _say(describe_absent_launcher(_read_configuration("hyperparameters"), _read_configuration("resourceconfig")))
    train.main()


class _ForkedScript:
    """A script's process that was forked from a warm interpreter."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> int:
        """Wait for its end; return the exit code, or the negative number of a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class _ScriptStarter:
    """What the toolkit uses of `subprocess`: starts the script, as a fork of the warm interpreter if possible."""

    def __init__(self, scripts: Any) -> None:
        self._scripts = scripts

    def Popen(self, command: Any, **options: Any) -> "_ForkedScript | subprocess.Popen[bytes]":  # noqa: N802
        report_moment(SCRIPT)
        _prepare_script(command, options)
        if self._scripts is None:
            return subprocess.Popen(command, **options)
        why = "its output is captured"
        if options.keys() <= {"env", "cwd", "stderr"} and options.get("stderr") is None:
            pid, why = self._scripts.start(list(command), dict(options["env"]), options["cwd"])
            if pid is not None:
                return _ForkedScript(pid)
        _say(f"the script starts in a new interpreter: {why}")
        return subprocess.Popen(command, **options)


def _prepare_script(command: list[str], options: dict[str, Any]) -> None:
    """Say what a script will miss, and give it the substitutes that it imports."""
    folder = Path(options.get("cwd") or ".")
    script = next((folder / each for each in command[1:] if each.endswith(".py") and (folder / each).is_file()), None)
    if script is None:  # a package, or a shell's script
        return
    for sentence in describe_absent(script, command):
        _say(sentence)
    substitutes = find_search_path(script)
    if substitutes is not None:
        environment = dict(options.get("env") or os.environ)
        paths = (environment.get("PYTHONPATH", ""), substitutes)
        options["env"] = {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _read_configuration(name: str) -> dict[str, Any]:
    """Return the content of one of the job's configuration files; an empty one if it cannot be read."""
    file = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "input", "config", f"{name}.json")
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _say(sentence: str | None) -> None:
    """Write a line of the emulator's into the job's log."""
    if sentence is not None:
        sys.stdout.write(f"smdebug-emulator: {sentence}\n")
        sys.stdout.flush()


def _without_import(ask_toolkit: Callable[[], list[object]]) -> Callable[[], list[object]]:
    """Return a function that lists the names without importing TensorFlow, or calls the toolkit if that fails."""
    return lambda: [*list_tensorflow_errors()] or ask_toolkit()


def list_tensorflow_errors() -> list[str]:
    """Return the sorted names of TensorFlow's exceptions; none if TensorFlow or the module is missing."""
    spec = find_spec("tensorflow")
    for folder in (spec and spec.submodule_search_locations) or ():
        try:
            tree = ast.parse(Path(folder, _ERRORS).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        if names := sorted(node.name for node in tree.body if isinstance(node, ast.ClassDef)):
            return [*names, _XLA_ERROR]
    return []


if __name__ == "__main__":
    main()
