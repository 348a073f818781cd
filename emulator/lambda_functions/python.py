"""Functions in Python: interpreters, and the client for other versions."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from container_runtime.spec import Mount

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT = "python_client.py"
OWN_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# That of the image of functions.
_IMAGE_VERSION = "3.11"
_PROBE_SECONDS = 30.0


def find_version(back_end: str) -> str:
    """Return the version of the Python that runs functions where nothing else is said."""
    return _IMAGE_VERSION if back_end != "process" else OWN_VERSION


def find_python(version: str, folders: Sequence[Path] = ()) -> str | None:
    """Return this machine's interpreter of a version, such as 3.12: the first that runs in ``folders``, or on PATH.

    The shims of pyenv are on PATH for each version that it has, and run where PYENV_VERSION names it.
    """
    for folder in [*map(str, folders), *os.get_exec_path()]:
        found = shutil.which(f"python{version}", path=folder)
        if found and (python := _probe(found, version)):
            return python
    return None


def _probe(program: str, version: str) -> str | None:
    """Return the path of the interpreter behind ``program``, if it is of that version."""
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
    """Return the folder in which this interpreter has AWS's runtime client; nothing where it has none."""
    client = importlib.util.find_spec("awslambdaric")
    return "" if client is None or client.origin is None else str(Path(client.origin).parents[1])


def stage_python_client(folder: Path) -> Mount:
    """Put what another version runs into a folder of the worker's."""
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name(CLIENT), folder)
    return Mount(folder, "/var/runtime", read_only=True)
