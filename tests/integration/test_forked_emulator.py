"""Tests of emulators in forks, beside one in a new interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sdk_compat.emulator_process import EmulatorProcess, EmulatorStartError
from tests.forked_emulator import ForkedEmulator, ForkedProcess


@pytest.mark.slow
def test_a_fork_says_and_ends_as_a_new_interpreter_does(tmp_path: Path) -> None:
    """It refuses with the same words, and ends with the same codes."""
    refusals, codes = [], []
    for kind in (EmulatorProcess, ForkedEmulator):
        with pytest.raises(EmulatorStartError) as refused:
            kind(tmp_path / kind.__name__, runtime="process", arguments=["--max-jobs", "none"])
        refusals.append(str(refused.value))
        with kind(tmp_path / kind.__name__, runtime="process", warm=None) as emulator:
            assert emulator.ask("health")["runtime"] == "process"
            codes.append(emulator.stop())
    assert refusals[0] == refusals[1]
    assert codes == [0, 0]


@pytest.mark.slow
def test_a_fork_is_killed_and_ends_with_its_input(tmp_path: Path) -> None:
    killed = ForkedEmulator(tmp_path / "killed", runtime="process", warm=None)
    killed.kill()
    assert killed.process.returncode == -signal.SIGKILL
    left = ForkedEmulator(tmp_path / "left", runtime="process", warm=None)
    assert left.process.stdin is not None
    left.process.stdin.close()
    assert left.process.wait(180) == 0
    left.stop()


def test_a_signal_to_a_fork_whose_exit_code_is_still_to_come_has_no_effect() -> None:
    """The forking process has collected the ended fork, and has not yet written its exit code."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (stdin_end, stdin), (stdout, stdout_end), (exit_code, exit_code_end) = os.pipe(), os.pipe(), os.pipe()
    fork = ForkedProcess(ended.pid, stdin, stdout, exit_code)
    fork.terminate()
    assert fork.poll() is None
    os.write(exit_code_end, b"3")
    for end in (stdin_end, stdout_end, exit_code_end):
        os.close(end)
    assert fork.wait() == 3
    assert fork.communicate() == ("", None)
