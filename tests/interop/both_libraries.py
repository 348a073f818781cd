"""The same calls of a profile's readers in our library and in the real one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def ask_both(script: Path, folder: Path, upstream_python: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a script on a profile under our interpreter and the one of upstream; return what each call found."""
    found: list[dict[str, Any]] = []
    for python in (sys.executable, str(upstream_python)):
        command = [python, "-W", "ignore", str(script), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(json.loads(done.stdout.rpartition("FOUND ")[2]))
    ours, theirs = found
    assert ours.keys() == theirs.keys()
    return ours, theirs
