"""Tests of docs/trials.md: its examples run in order, in one namespace."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.trials.__main__ import main
from tests.unit.smdebug.runs import RunMaker

mpl.use("Agg")

PAGE = (Path(__file__).parents[2] / "docs/trials.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def write_run(folder: Path) -> None:
    run = RunMaker(folder)
    chance = np.random.default_rng(0)
    mode_steps = {ModeKeys.TRAIN: -1, ModeKeys.EVAL: -1}
    step = 0
    for epoch in range(3):
        for mode in [ModeKeys.TRAIN] * 10 + [ModeKeys.EVAL]:
            mode_steps[mode] += 1
            tensors: dict[str, Any] = {
                "fc1.weight": chance.standard_normal((16, 8)).astype(np.float32),
                "fc2.weight": chance.standard_normal((2, 16)).astype(np.float32),
                "loss": 1.0 / (step + 1),
            }
            if mode is ModeKeys.EVAL:
                tensors["accuracy"] = 0.3 * epoch
            run.write_step(step, tensors, mode, mode_steps[mode])
            step += 1
    run.end()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*non-interactive:UserWarning")
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs_trials"}
    assert len(EXAMPLES) == 7
    for number, example in enumerate(EXAMPLES):
        exec(compile(example, f"docs/trials.md, example {number + 1}", "exec"), namespace)
    assert {path.name for path in tmp_path.glob("*.png")} == {"loss.png", "spread.png", "histogram.png"}
    printed = capsys.readouterr().out
    assert "Tensor fc3.weight was not saved" in printed
    assert "Tensor accuracy is not available at step 0" in printed


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"python -m smdebug\.trials (run\b[^#\n]*)", PAGE)
    assert commands
    for command in commands:
        assert main(command.split()) == 0
    assert "EVAL           3" in capsys.readouterr().out
