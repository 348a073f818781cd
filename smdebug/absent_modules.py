"""Modules that AWS's training images have and ours lack.

Before a script starts, its log names those that it imports, with what to use in their place. Packages that are small
enough to be substituted are in ``script_packages``.
"""

import ast
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from smdebug.environment import CONFIG_FILE_PATH_ENV_STR, DEFAULT_SAGEMAKER_CONFIG_FILE, is_switched_on

SCRIPT_PACKAGES = Path(__file__).with_name("script_packages")
"""Folder of the substitutes, which a script that imports one of them has on its path."""

_REMEDIES = {
    "apex": "use torch.amp",
    "cv2": "name opencv-python-headless in a requirements.txt beside the script",
    "deepspeed": "name deepspeed in a requirements.txt beside the script",
    "horovod": "use torch.distributed or tf.distribute",
    "mpi4py": "name mpi4py and openmpi in a requirements.txt beside the script",
    "smdistributed": "its libraries need AWS's GPUs and network; use torch.distributed",
}


def list_substitutes() -> list[str]:
    """Return the sorted names of the packages in `SCRIPT_PACKAGES`."""
    return sorted(folder.name for folder in SCRIPT_PACKAGES.iterdir() if (folder / "__init__.py").is_file())


def find_imports(script: Path) -> set[str]:
    """Return the names of the packages that a script imports; none if it is not a readable Python file."""
    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    return {name.partition(".")[0] for node in ast.walk(tree) for name in _list_names(node)}


def describe_absent(script: Path, arguments: Sequence[str]) -> Iterator[str]:
    """Describe what a script needs that this image lacks, one sentence each.

    Args:
        script: the file of the script.
        arguments: its command-line arguments.
    """
    imports = find_imports(script)
    for name in sorted(imports & _REMEDIES.keys()):
        if not _is_there(name, script):
            yield f"the script imports {name}, which AWS's image has and this one does not: {_REMEDIES[name]}"
    given = dict(pairwise(arguments)).get("--model_dir", "")
    if "tensorflow" not in imports or not given.startswith("s3://") or not _names(script, "model_dir"):
        return
    # That of TensorFlow 2.12 is imported by TensorFlow itself; the substitute by the capture of a job's tensors.
    comes = version("tensorflow-io").startswith("0.32.") if _is_installed("tensorflow-io") else _is_captured()
    if "tensorflow_io" not in imports and not comes:
        yield (
            f"--model_dir is {given}: TensorFlow has a file system for s3:// only once the script has imported "
            "tensorflow_io, and it does not"
        )


def describe_absent_launcher(hyperparameters: Mapping[str, Any], resources: Mapping[str, Any]) -> str | None:
    """Return a sentence if a job asks for MPI in a way that it cannot have here.

    Args:
        hyperparameters: content of hyperparameters.json.
        resources: content of resourceconfig.json.
    """
    if str(hyperparameters.get("sagemaker_mpi_enabled", "")).strip('"').lower() != "true":
        return None
    if shutil.which("mpirun") is None:
        return "the job asks for MPI, and there is no mpirun here: use distribution={'torch_distributed': …}"
    if len(resources.get("hosts") or ()) > 1:
        return (
            "the job asks for MPI on several hosts, which reach each other by SSH, and there is none here: ask for one "
            "instance with several processes_per_host, or use distribution={'torch_distributed': …}"
        )
    return None


def find_search_path(script: Path) -> str | None:
    """Return `SCRIPT_PACKAGES` if a script imports a substituted package that is not installed; else None."""
    imports = find_imports(script)
    wanted = any(name in imports and not _is_there(name, script) for name in list_substitutes())
    return os.fspath(SCRIPT_PACKAGES) if wanted else None


def _list_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


def _is_there(name: str, script: Path) -> bool:
    beside = (script.with_name(name), script.with_name(f"{name}.py"))
    return any(path.exists() for path in beside) or find_spec(name) is not None


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _is_captured() -> bool:
    """Whether `smdebug.autoload` is there when the script imports TensorFlow, as `autoload.pth` decides it."""
    config = os.environ.get(CONFIG_FILE_PATH_ENV_STR) or DEFAULT_SAGEMAKER_CONFIG_FILE
    return is_switched_on() and Path(config).is_file()


def _names(script: Path, word: str) -> bool:
    return word in script.read_text(encoding="utf-8", errors="replace")
