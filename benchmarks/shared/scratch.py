"""Temporary in-memory folders for benchmarks and their scripts.

They are removed after the measurement, even if it fails.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "smdebug-benchmark-"
_MEMORY = Path("/dev/shm")


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield an empty folder, in memory if the machine supports it."""
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def run_script(command: Sequence[str], environment: Mapping[str, str | None]) -> dict[str, float]:
    """Run a measuring script in a scratch folder, and return its last line of output, parsed as JSON.

    Args:
        command: interpreter, script and arguments.
        environment: differences from this process's environment; None removes a variable.

    Raises:
        RuntimeError: the script failed; the text contains its error output.
    """
    with scratch() as folder:
        merged = {**os.environ, "SMDEBUG_LOG_LEVEL": "error", "TMPDIR": str(folder), **environment}
        given = {name: value for name, value in merged.items() if value is not None}
        done = subprocess.run(command, capture_output=True, text=True, env=given, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    answers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answers


def _sweep(parent: Path) -> None:
    """Remove the folders of killed measurements, which may take gigabytes of memory."""
    for folder in parent.glob(f"{_PREFIX}*"):
        found = re.match(rf"{_PREFIX}(\d+)-", folder.name)
        if found is not None and not Path(f"/proc/{found.group(1)}").exists():
            shutil.rmtree(folder)
