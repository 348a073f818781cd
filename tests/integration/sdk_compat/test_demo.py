"""Tests of a demo that ends early, and of its folder."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo import __main__ as demo
from tests.forked_emulator import ForkedEmulator


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while it runs", "while it stays"])
def test_an_emulator_that_died_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    started: list[ForkedEmulator] = []

    def start(*arguments: Any, **options: Any) -> ForkedEmulator:
        started.append(ForkedEmulator(*arguments, **options))
        return started[0]

    monkeypatch.setattr(demo, "EmulatorProcess", start)
    monkeypatch.setattr("sys.argv", ["demo", "--runtime", "process", "--output", str(tmp_path / "out"), "--stay"])
    if when == "while it runs":
        monkeypatch.setattr(demo, "stage_inputs", lambda _: started[0].process.kill())
    else:
        monkeypatch.setattr(demo, "run_demo", lambda *_: threading.Timer(0.1, started[0].process.kill).start())
    with pytest.raises(SystemExit, match=r"The emulator ended \(exit code -9\); its log is .*state\.log"):
        demo.main()


def test_files_of_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.txt").write_text("the only copy")
    monkeypatch.setattr("sys.argv", ["demo", "--runtime", "process", "--output", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"has files that no demo wrote, such as thesis\.txt: give another folder"):
        demo.main()
    assert (tmp_path / "thesis.txt").read_text() == "the only copy"


def test_the_folder_of_an_earlier_demo_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "state.log").touch()
    (tmp_path / "tensors" / "digits-sick").mkdir(parents=True)
    with pytest.raises(SystemExit, match="such as tensors"):
        demo.clear_output(tmp_path)
    (tmp_path / "state").mkdir()
    demo.clear_output(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["state.log"]


@pytest.mark.slow
def test_a_demo_that_still_runs_keeps_its_folder(tmp_path: Path) -> None:
    with ForkedEmulator(tmp_path / "state", runtime="process") as emulator:
        command = [sys.executable, "-m", "emulator", "demo", "--runtime", "process", "--output", str(tmp_path)]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"its emulator answers at {emulator.endpoint_url}: end it with Ctrl-C" in refused.stderr
        assert emulator.ask("health")["status"] == "running"


@pytest.mark.slow
def test_ctrl_c_ends_a_demo_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "--runtime", "process", "--output", str(tmp_path / "out")])
    monkeypatch.setattr(demo, "EmulatorProcess", ForkedEmulator)
    monkeypatch.setattr(demo, "run_demo", lambda *_: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert demo.main() == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out.endswith("\nInterrupted.\n")
