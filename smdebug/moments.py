"""Moments of a training, reported to the service that runs it.

The service shows where a job's seconds went. The file is beside that of the warnings (``job_warnings.py``). Each of its
lines is a name and milliseconds since the epoch. Outside of the service no file is written.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from smdebug.environment import WARNINGS_PATH_ENV_STR

SCRIPT = "script"
"""The training toolkit starts the script."""
FRAMEWORK = "framework"
"""A framework has been imported."""
STEP = "step"
"""The first step that is saved has ended."""

FILE = "moments"
# The service does not read more.
_MOST_BYTES = 1 << 14

_reported: set[str] = set()


def report_moment(name: str) -> None:
    """Report that the moment ``name`` is now. A report may be lost. Each process reports one first step."""
    path = os.environ.get(WARNINGS_PATH_ENV_STR)
    if not path or name in _reported:
        return
    if name == STEP:
        _reported.add(name)
    line = f"{name} {time.time_ns() // 1_000_000}\n".encode()
    # One system call, because the processes of a distributed training share the file.
    with suppress(OSError), Path(path).with_name(FILE).open("ab", buffering=0) as file:
        if file.tell() + len(line) <= _MOST_BYTES:
            file.write(line)
