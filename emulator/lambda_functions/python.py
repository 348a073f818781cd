"""Functions in Python: interpreters, and the client for other versions."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CLIENT = "python_client.py"
OWN_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# The version in the container image for functions.
IMAGE_VERSION = "3.11"
_PROBE_SECONDS = 30.0


def find_python(version: str, folders: Sequence[Path] = ()) -> str | None:
    """Return the path of the first working interpreter of a version, such as 3.12, in ``folders`` and then on PATH.

    It also finds the interpreters of pyenv, whose shims only work if PYENV_VERSION names the version.
    """
    for folder in [*map(str, folders), *os.get_exec_path()]:
        found = shutil.which(f"python{version}", path=folder)
        if found and (python := _probe(found, version)):
            return python
    return None


def _probe(program: str, version: str) -> str | None:
    """Run ``program`` and return the path of its interpreter; None if it fails or has another version."""
    told = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
    try:
        ran = subprocess.run(
            [program, "-I", "-c", told],
            env={**os.environ, "PYENV_VERSION": version},
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found, _, path = ran.stdout.strip().partition(" ")
    return path if ran.returncode == 0 and found == version else None


def find_packages() -> str:
    """Return the folder where this interpreter has installed awslambdaric; an empty string if it is not installed."""
    client = importlib.util.find_spec("awslambdaric")
    return "" if client is None or client.origin is None else str(Path(client.origin).parents[1])
