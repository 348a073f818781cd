"""FeatureImportanceOverweight, TreeDepth and CreateXgboostReport."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin.create_xgboost_report import CreateXgboostReport, compute_roc
from smdebug.rules.builtin.feature_importance_overweight import FeatureImportanceOverweight
from smdebug.rules.builtin.tree_depth import TreeDepth
from smdebug.rules.drawing.html_page import render_lines
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding, write_run

if TYPE_CHECKING:
    from pathlib import Path


def name_importances(values: list[float]) -> dict[str, float]:
    return {f"feature_importance/weight/f{at}": value for at, value in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "parameters", "fires"),
    [
        ([0.5, 0.2, 0.1, 0.1, 0.1], {}, []),
        ([0.5, 0.21, 0.1, 0.1, 0.09], {}, [0]),
        ([0.5, 0.2, 0.1, 0.1, 0.1], {"nfeatures": "1", "threshold": "0.49"}, [0]),
        ([0.5, 0.2, 0.1, 0.1, 0.1], {"tensor_regex": "gain"}, []),
    ],
)
def test_importance(tmp_path: Path, values: list[float], parameters: dict[str, str], fires: list[int]) -> None:
    rule = FeatureImportanceOverweight(write_run(tmp_path, [name_importances(values)]), **parameters)
    assert find_firing(rule) == fires
    if fires:
        count = int(parameters.get("nfeatures", "3"))
        assert get_finding(rule).value == pytest.approx(np.sort(values)[::-1][:count].sum() / np.sum(values))
        assert get_finding(rule).tensor == "feature_importance/weight/f0"


def grow(depth: int) -> list[int]:
    """Node numbers of a tree whose leftmost branch alone goes down: the smallest numbers that a depth can have."""
    nodes, node = [0], 0
    for _ in range(depth):
        nodes += [2 * node + 1, 2 * node + 2]
        node = 2 * node + 1
    return nodes


@pytest.mark.parametrize(("depth", "fires"), [(0, []), (4, []), (5, [0]), (9, [0])])
def test_depth(tmp_path: Path, depth: int, fires: list[int]) -> None:
    rule = TreeDepth(
        write_run(tmp_path, [{"trees/Node": np.array(grow(depth)), "trees/Tree": np.zeros(2 * depth + 1)}])
    )
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).value == depth


def test_depth_of_the_deepest_tree(tmp_path: Path) -> None:
    nodes = [grow(2), grow(5), grow(1)]
    trees = [[at] * len(each) for at, each in enumerate(nodes)]
    rule = TreeDepth(write_run(tmp_path, [{"trees/Node": np.concatenate(nodes), "trees/Tree": np.concatenate(trees)}]))
    assert find_firing(rule) == [0]
    assert "tree 1 is 5 levels deep, deeper than depth 4" in str(get_finding(rule))
    # AWS documents the depth as a float.
    assert find_firing(TreeDepth(rule.base_trial, depth="4.5")) == [0]
    assert find_firing(TreeDepth(rule.base_trial, depth="5.5")) == []


def test_depth_of_a_real_run(original_run: Any) -> None:
    trial = original_run("xgb_all")
    assert find_firing(TreeDepth(trial)) == []
    assert find_firing(TreeDepth(trial, depth="1")) == [0, 2]


def test_wrong_parameters(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{}])
    with pytest.raises(SMDebugValueError, match="depth is '-1', expected a number of at least 0"):
        TreeDepth(trial, depth="-1")
    with pytest.raises(SMDebugValueError, match="nfeatures is 'all', expected a whole number of at least 1"):
        FeatureImportanceOverweight(trial, nfeatures="all")
    with pytest.raises(SMDebugValueError, match=r"no parameter 'threshold'.* Its parameters are: none"):
        CreateXgboostReport(trial, threshold="1")


class Page(HTMLParser):
    """Counts tags and keeps text, and what would need the network."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def test_area_agrees_with_sklearn() -> None:
    random = np.random.default_rng(6)
    labels, scores = random.integers(0, 2, 200), np.round(random.uniform(size=200), 1)
    points, area = compute_roc(labels, scores)
    assert area == pytest.approx(roc_auc_score(labels, scores))
    assert points[0] == (0, 0)
    assert points[-1] == (1, 1)
    assert np.isnan(compute_roc(np.ones(3), np.arange(3.0))[1])


def make_report(folder: Path, trial: Any) -> Page:
    rule = CreateXgboostReport(trial)
    rule.output_dir = folder
    assert find_firing(rule) == []
    written = folder / "CreateXgboostReport/xgboost-reports/xgboost_report.html"
    return Page(written.read_text(encoding="utf-8"))


def test_report_of_classes(tmp_path: Path, original_run: Any) -> None:
    page = make_report(tmp_path, original_run("xgb_all"))
    for heading in (
        "Hyperparameters",
        "Loss curve: logloss",
        "Feature importance: gain",
        "Confusion matrix",
        "ROC curve",
    ):
        assert heading in page.text
    assert "binary:logistic" in page.text
    assert page.links == []
    assert "script" not in page.tags
    assert page.tags.count("svg") == 8
    notebook = tmp_path / "CreateXgboostReport/xgboost-reports/xgboost_report.ipynb"
    assert original_run("xgb_all").path in notebook.read_text(encoding="utf-8")


def test_a_single_round_is_seen() -> None:
    assert render_lines({"train-auc": [(0.0, 0.7)]}, "round", "auc").count("<circle") == 1
    assert render_lines({"train-auc": [(0.0, 0.7), (1.0, 0.8)]}, "round", "auc").count("<circle") == 0


def test_report_of_a_regression(tmp_path: Path) -> None:
    labels, predictions = np.linspace(0, 5, 50), np.linspace(0.1, 5.3, 50)
    steps = [{"labels": labels, "predictions": predictions, "train-rmse": 1.0, "hyperparameters/<eta>": "a & b"}]
    page = make_report(tmp_path, write_run(tmp_path / "run", steps))
    assert "Residuals" in page.text
    assert f"{np.sqrt(np.mean((labels - predictions) ** 2)):.6g}" in page.text
    assert "ROC curve" not in page.text
    assert "<eta>" in page.text


@pytest.mark.parametrize(
    ("objective", "heading"),
    [("reg:squarederror", "Residuals"), ("rank:ndcg", ""), ("multi:softmax", "Confusion matrix")],
)
def test_what_is_shown_of_predictions_depends_on_what_is_learned(tmp_path: Path, objective: str, heading: str) -> None:
    grades = np.arange(60) % 5
    scores = grades.astype(np.float32) if objective.startswith("multi") else grades + np.linspace(-0.4, 0.4, 60)
    steps = [{"labels": grades, "predictions": scores, "hyperparameters/objective": objective}]
    page = make_report(tmp_path, write_run(tmp_path / "run", steps))
    assert [each for each in ("Residuals", "Confusion matrix", "ROC curve") if each in page.text] == [heading][
        : len(heading)
    ]


def test_a_page_about_many_predictions_stays_small(tmp_path: Path) -> None:
    scores = np.linspace(0, 1, 100_000)
    page = make_report(tmp_path, write_run(tmp_path / "run", [{"labels": scores > 0.5, "predictions": scores}]))
    assert "area 1.0000" in page.text
    written = tmp_path / "CreateXgboostReport/xgboost-reports/xgboost_report.html"
    assert written.stat().st_size < 100_000


def test_a_flat_line_of_large_numbers_is_drawn() -> None:
    assert "nan" not in render_lines({"train-rmse": [(0.0, 1e20), (1.0, 1e20)]}, "round", "rmse")


def test_report_is_written_again_at_the_end(tmp_path: Path) -> None:
    page = make_report(tmp_path, write_run(tmp_path / "run", [{"train-rmse": float(step)} for step in range(5)]))
    assert "round 4" in page.text
