"""Tests of a demo whose emulator ends early."""

import threading
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo import __main__ as demo
from sdk_compat.emulator_process import EmulatorProcess


@pytest.mark.parametrize("when", ["while it runs", "while it stays"])
def test_an_emulator_that_died_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    started: list[EmulatorProcess] = []

    def start(*arguments: Any, **options: Any) -> EmulatorProcess:
        started.append(EmulatorProcess(*arguments, **options))
        return started[0]

    monkeypatch.setattr(demo, "EmulatorProcess", start)
    monkeypatch.setattr("sys.argv", ["demo", "--runtime", "process", "--output", str(tmp_path / "out"), "--stay"])
    if when == "while it runs":
        monkeypatch.setattr(demo, "stage_inputs", lambda _: started[0].process.kill())
    else:
        monkeypatch.setattr(demo, "run_demo", lambda *_: threading.Timer(0.1, started[0].process.kill).start())
    with pytest.raises(SystemExit, match=r"The emulator ended \(exit code -9\); its log is .*state\.log"):
        demo.main()
