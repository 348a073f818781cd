from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from smdebug.rules.__main__ import main
from smdebug.rules.builtin import list_names
from tests.unit.smdebug.object_storage import BUCKET
from tests.unit.smdebug.runs import RunMaker

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.smdebug.object_storage import Storage


@pytest.fixture
def run(tmp_path: Path) -> str:
    maker = RunMaker(tmp_path / "run")
    for step, value in enumerate((1.0, 1.0, 1e-9)):
        maker.write_step(step, {"gradient/fc.weight": np.full(3, value), "loss": 1.0})
    maker.end()
    return maker.out_dir


def test_list_and_show(capsys: Any) -> None:
    assert main(["list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list_names()
    assert main(["show", "DeadRelu"]) == 0
    assert "threshold_inactivity" in capsys.readouterr().out
    assert main(["show", "Dead"]) == 1
    assert "There is no built-in rule 'Dead'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["VanishingGradient"], 2, "gradient/fc.weight at step 2 (mode GLOBAL, mode step 2), worker_0"),
        (["VanishingGradient", "--end-step", "2"], 0, "NoIssuesFound"),
        (["VanishingGradient", "--start-step", "3"], 1, "had no step to evaluate"),
        (["VanishingGradient", "--param", "threshold=1e-10"], 0, "NoIssuesFound"),
        (["VanishingGradient", "--param", "threshold=x"], 1, "threshold is 'x', expected a number of at least 0"),
        (["VanishingGradient", "--param", "threshold"], 1, "is not NAME=VALUE"),
        (["DeadRelu"], 0, "found none of what it looks at"),
        (["Unknown"], 1, "There is no built-in rule 'Unknown'"),
        (["SimilarAcrossRuns"], 1, "other_trials is required"),
    ],
)
def test_verdicts(run: str, arguments: list[str], exit_code: int, said: str, capsys: Any) -> None:
    assert main(["run", *arguments, "--trial", run]) == exit_code
    printed = capsys.readouterr()
    assert said in printed.out
    if exit_code != 1:
        assert f"{arguments[0]}: step 0 of 2" in printed.err


def test_json(run: str, capsys: Any) -> None:
    assert main(["run", "VanishingGradient", "--trial", run, "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert (answer["RuleEvaluationStatus"], answer["Step"]) == ("IssuesFound", 2)
    assert answer["Finding"]["tensor"] == "gradient/fc.weight"
    assert (answer["Finding"]["threshold"], answer["Finding"]["mode"]) == (1e-7, "GLOBAL")


def test_other_trial(run: str, capsys: Any) -> None:
    assert main(["run", "SimilarAcrossRuns", "--trial", run, "--other-trial", run]) == 2
    assert "it is the same at step 0" in capsys.readouterr().out


def test_run_that_has_not_ended(tmp_path: Path, capsys: Any) -> None:
    maker = RunMaker(tmp_path)
    maker.write_step(0, {"gradient/a": np.ones(2)})
    assert main(["run", "VanishingGradient", "--trial", maker.out_dir, "--no-wait"]) == 0
    assert main(["run", "VanishingGradient", "--trial", str(tmp_path / "nowhere")]) == 1
    assert "There is no folder" in capsys.readouterr().out


def test_run_on_s3(storage: Storage, capsys: Any) -> None:
    maker = RunMaker(f"s3://{BUCKET}/run")
    maker.write_step(0, {"gradient/a": np.zeros(2)})
    maker.end()
    assert main(["run", "VanishingGradient", "--trial", maker.out_dir]) == 2
    assert "gradient/a at step 0" in capsys.readouterr().out


def test_report_goes_where_it_is_told(run: str, tmp_path: Path, capsys: Any) -> None:
    main(["run", "CreateXgboostReport", "--trial", run, "--output", str(tmp_path / "out")])
    assert list((tmp_path / "out").rglob("*.html"))


def test_the_emulator_delegates(run: str) -> None:
    command = [sys.executable, "-m", "emulator", "rules", "run", "VanishingGradient", "--trial", run, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["RuleEvaluationStatus"] == "IssuesFound"
    helped = subprocess.run([*command[:4], "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    assert "run" in helped.stdout
