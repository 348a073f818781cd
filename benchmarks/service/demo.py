"""Seconds until the demo's sick job is stopped.

Goal: 2.5 s with processes, 3 s with Docker, from its CreateTrainingJob to Stopped, as its events arrive.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.shared.engine import back_ends

ROUNDS = int(os.environ.get("ROUNDS", "3"))
_GOALS = {"process": 2.5, "docker": 3.0}
_STAGE = re.compile(r"^ +([\d.]+) s +digits-sick +(\w+)", re.MULTILINE)


def time_demo(runtime: str) -> dict[str, float]:
    """Run the demo; return the seconds at which the event of each stage of the sick job arrived.

    Raises:
        RuntimeError: the demo failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "sdk_compat.demo", "--runtime", runtime, "--output", f"{folder}/demo"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return {stage: float(seconds) for seconds, stage in _STAGE.findall(done.stdout)}


def measure() -> Iterator[str]:
    for runtime in back_ends():
        stages = [time_demo(runtime) for _ in range(ROUNDS)]
        training, stopped = (statistics.median(each[name] for each in stages) for name in ("Training", "Stopped"))
        yield f"{runtime:<8} Training {training:5.1f} s   Stopped {stopped:5.1f} s   goal: {_GOALS[runtime]:.1f} s"
