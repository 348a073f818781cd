"""Program `train` of our images: AWS's training toolkit without TensorFlow.

Before it starts the user's script, the toolkit imports TensorFlow for the names of its exceptions, which takes seconds
in every job whose environment has TensorFlow. Here it gets the same names from TensorFlow's source. Everything else is
the toolkit's own, and the script, a process of its own, imports what it likes.
"""

import ast
import gc
import importlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The module whose classes the toolkit looks for in what a script prints, below the folder of TensorFlow.
_ERRORS = "python/framework/errors_impl.py"
# The one more name that the toolkit adds: no module of TensorFlow defines it.
_XLA_ERROR = "XlaRuntimeError"


def main() -> None:
    """Run the toolkit; it ends the process itself."""
    process: Any = importlib.import_module("sagemaker_training.process")
    process.get_tensorflow_exception_classes = _without_import(process.get_tensorflow_exception_classes)
    train = importlib.import_module("sagemaker_training.cli.train")
    # Modules live as long as the process: its end need not search them for garbage.
    gc.freeze()
    train.main()


def _without_import(ask_toolkit: Callable[[], list[object]]) -> Callable[[], list[object]]:
    """Return what lists the names without importing TensorFlow, or as the toolkit does where that is not possible."""
    return lambda: [*list_tensorflow_errors()] or ask_toolkit()


def list_tensorflow_errors() -> list[str]:
    """List the names of TensorFlow's exceptions, sorted; none where there is no TensorFlow with such a module."""
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
