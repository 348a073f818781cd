"""Start-up cost of the pytest plugin's emulator and of ``run``.

"plugin" is the duration of pytest for one test with the fixture ``sagemaker_emulator``, minus its duration for a test
without a fixture. "run" is the duration of ``smdebug-emulator run -- true`` with a running emulator, minus that of
``true``.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from sdk_compat.emulator_process import EmulatorProcess

ROUNDS = 7
TESTS = {"without": "def test_it(): ...", "with": "def test_it(sagemaker_emulator): ..."}


def measure() -> Iterator[str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for kind, text in TESTS.items():
            (folder / f"test_{kind}.py").write_text(text)
        pytest = [sys.executable, "-m", "pytest", "-q", "--sagemaker-runtime", "process"]
        yield _compare(
            "plugin", [*pytest, str(folder / "test_with.py")], [*pytest, str(folder / "test_without.py")], "2 s"
        )
        with EmulatorProcess(folder / "state", runtime="process") as emulator:
            run = [sys.executable, "-m", "emulator", "run", "--state-dir", str(emulator.state_dir), "--", "true"]
            yield _compare("run", run, ["true"], "0.15 s")


def _compare(name: str, command: list[str], bare: list[str], goal: str) -> str:
    """Time both commands in turn, and return a line with the difference."""
    differences = [_time(command) - _time(bare) for _ in range(ROUNDS)]
    middle, least = statistics.median(differences), min(differences)
    return f"{name:8} {middle:.2f} s more than without (median of {ROUNDS}; least {least:.2f} s; goal under {goal})"


def _time(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
