"""Tests of the report's notebook: its format, and its code on a run."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from smdebug.rules.drawing.notebook import render_notebook
from tests.unit.smdebug.runs import RunMaker

mpl.use("agg")


def run_cells(notebook: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    for cell in json.loads(notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), namespace)
    return namespace


@pytest.fixture
def xgboost_run(tmp_path: Path) -> Any:
    run = RunMaker(tmp_path / "run")
    run.write_collections({"metrics": {"train-rmse", "validation-rmse"}})
    for step in (0, 5):
        run.write_step(
            step,
            {
                "train-rmse": np.array([1.0 / (step + 1)]),
                "validation-rmse": np.array([2.0 / (step + 1)]),
                "feature_importance/gain/f0": np.array([0.75]),
                "feature_importance/gain/f1": np.array([0.25]),
                "labels": np.array([0.0, 1.0, 1.0]),
                "predictions": np.array([0.1, 0.9, 0.2]),
            },
        )
    run.end()
    return tmp_path / "run"


def test_every_cell_runs_and_says_what_was_saved(xgboost_run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = render_notebook('Training "a"', str(xgboost_run))
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    found = run_cells(text)
    assert found["kinds"] == ["rmse"]
    assert np.array_equal(found["confusion"], [[1, 0], [1, 1]])
    said = capsys.readouterr().out
    assert said.index("f0 0.7500") < said.index("f1 0.2500")


@pytest.mark.parametrize("objective", ["reg:squarederror", "rank:ndcg"])
def test_grades_are_not_classes(tmp_path: Path, objective: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunMaker(tmp_path / "run")
    tensors = {"labels": np.arange(60) % 5, "predictions": np.linspace(0, 4, 60), "train-rmse": np.array([1.0])}
    run.write_step(0, {**tensors, "hyperparameters/objective": np.array([objective])})
    run.end()
    assert run_cells(render_notebook("Training", str(tmp_path / "run")))["pairs"] is None
    assert ("residuals: mean" in capsys.readouterr().out) == objective.startswith("reg:")


def test_a_run_without_predictions_or_importances_is_not_an_error(tmp_path: Path) -> None:
    run = RunMaker(tmp_path / "run")
    run.write_collections({"metrics": {"train-rmse", "validation-rmse"}})
    run.write_step(0, {"train-rmse": np.array([1.0])})
    run.end()
    assert run_cells(render_notebook("Training", str(tmp_path / "run")))["labels"] is None
