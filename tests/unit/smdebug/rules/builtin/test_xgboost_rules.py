"""Tests of FeatureImportanceOverweight, TreeDepth and CreateXgboostReport."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin.create_xgboost_report import CreateXgboostReport
from smdebug.rules.builtin.feature_importance_overweight import FeatureImportanceOverweight
from smdebug.rules.builtin.tree_depth import TreeDepth
from smdebug.rules.drawing.html_page import render_lines
from smdebug.rules.drawing.xgboost_page import XgboostRun
from smdebug.rules.evaluator import evaluate
from smdebug.rules.measuring.classes import count_pairs
from smdebug.rules.measuring.evaluation import (
    choose_label_bins,
    compute_average_scores,
    compute_class_scores,
    compute_errors_by_bin,
    compute_roc,
)
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding, write_run


def name_importances(values: list[float]) -> dict[str, float]:
    return {f"feature_importance/weight/f{at}": value for at, value in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "parameters", "fires"),
    [
        ([0.5, 0.2, 0.1, 0.1, 0.1], {}, []),
        ([0.0, 0.0], {}, []),
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


def test_depth_of_a_real_run(upstream_run: Any) -> None:
    trial = upstream_run("xgb_all")
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
    written = folder / "xgboost_report.html"
    return Page(written.read_text(encoding="utf-8"))


def test_scores_agree_with_sklearn() -> None:
    random = np.random.default_rng(8)
    # Class 3 has no sample, class 4 is never predicted, class 5 has neither.
    labels, predicted = random.choice([0, 0, 0, 1, 2, 4], 300), random.choice([0, 0, 1, 2, 2, 3], 300)
    matrix = count_pairs(labels, predicted, 6)
    for average, scores in compute_average_scores(matrix).items():
        expected = precision_recall_fscore_support(labels, predicted, average=average, zero_division=0)
        assert scores == pytest.approx(expected[:3])
    expected = precision_recall_fscore_support(labels, predicted, labels=range(6), zero_division=0)
    assert np.array(compute_class_scores(matrix)) == pytest.approx(np.array(expected[:3]).T)


def test_errors_by_bin_of_labels() -> None:
    labels = np.linspace(0, 100, 201)
    edges = choose_label_bins(labels)
    assert edges.tolist() == list(range(0, 101, 10))
    errors = compute_errors_by_bin(labels, labels + np.where(labels >= 90, 3, -1), edges)
    assert errors == pytest.approx([1] * 9 + [3])
    assert np.isnan(compute_errors_by_bin(np.array([1.0]), np.array([1.0]), edges)[5])
    assert choose_label_bins(np.array([4.0, 4.0])).tolist() == [3.5, 4.5]
    assert choose_label_bins(np.array([np.nan])).tolist() == [-0.5, 0.5]


# AWS's sections; of each stands what it means and what to do.
OF_ALL = ("Distribution of true labels", "Loss curve: logloss", "Metric curve: auc", "Feature importance: ")
OF_CLASSES = (
    "Confusion matrix",
    "Evaluation of the confusion matrix",
    "F1 score over iterations",
    "Accuracy of each diagonal element over iterations",
    "ROC curve",
)
OF_NUMBERS = (
    "Distribution of residuals at the last saved step",
    "Absolute validation error by label bin over iterations",
)


def test_report_of_classes(tmp_path: Path, upstream_run: Any) -> None:
    page = make_report(tmp_path, upstream_run("xgb_all"))
    found = [page.text.find(heading) for heading in ("Hyperparameters", *OF_ALL, *OF_CLASSES)]
    assert found == sorted(found)
    assert -1 not in found
    assert not any(heading in page.text for heading in OF_NUMBERS)
    assert "binary:logistic" in page.text
    assert all(f"{average} average" in page.text for average in ("micro", "macro", "weighted"))
    assert page.links == []
    assert "script" not in page.tags
    assert page.tags.count("svg") == 11
    assert page.text.count("What to do: ") == len(OF_ALL) + len(OF_CLASSES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["xgboost_report.html", "xgboost_report.ipynb"]
    assert upstream_run("xgb_all").path in (tmp_path / "xgboost_report.ipynb").read_text(encoding="utf-8")


def test_accuracy_of_each_class_is_drawn_round_by_round(tmp_path: Path) -> None:
    labels = np.array([0, 0, 1, 1, 2, 2])
    rounds = [np.array([0, 1, 1, 1, 2, 0]), labels]
    steps = [{"labels": labels, "predictions": each, "hyperparameters/objective": "multi:softmax"} for each in rounds]
    rule = CreateXgboostReport(write_run(tmp_path / "run", steps))
    rule.output_dir = tmp_path
    verdict = evaluate(rule)
    rule.finish()
    assert verdict.details.endswith(f"wrote xgboost_report.html and xgboost_report.ipynb into {tmp_path}.")
    page = rule.path.read_text(encoding="utf-8")
    section = page[page.index("Accuracy of each diagonal") :].partition("<h2>")[0]
    assert re.findall(r">(class \d)<", section) == ["class 0", "class 1", "class 2"]
    assert section.count("<polyline") == 3
    # All right at last: the diagonal is dark, the rest is white.
    cells = re.findall(r'<td style="background:(#\w+);color:(#\w+)">(\d+)</td>', page)
    assert [cells[at] for at in (0, 4, 8)] == [("#1f5fa8", "#fff", "2")] * 3
    assert cells[1] == ("#ffffff", "#1c1c1c", "0")


def test_f1_scores_are_drawn_round_by_round() -> None:
    run = XgboostRun(hyperparameters={"objective": "binary:logistic"})
    labels = np.array([0, 0, 0, 1])
    run.take_predictions(0, labels, np.array([0.9, 0.1, 0.1, 0.1]))
    run.take_predictions(5, None, np.array([0.1, 0.1, 0.1, 0.9]))
    # One wrong of each: precision and recall of class 0 are 2/3, those of class 1 are 0.
    averages = {f"{name} average": score for name, score in (("micro", 0.5), ("macro", 1 / 3), ("weighted", 0.5))}
    assert run._f1[0] == pytest.approx({**averages, "class 0": 2 / 3, "class 1": 0})
    assert set(run._f1[5].values()) == {1.0}
    section = run.render("x").partition("F1 score over iterations")[2].partition("<h2>")[0]
    assert section.count("<polyline") == 5
    assert re.findall(r">(\w+ (?:average|\d))<", section) == [*averages, "class 0", "class 1"]


def test_auc_is_not_a_loss_curve(tmp_path: Path) -> None:
    page = make_report(tmp_path, write_run(tmp_path / "run", [{"train-auc": 0.7, "train-rmse": 1.0}]))
    assert "Loss curve: rmse" in page.text
    assert "Metric curve: auc" in page.text
    assert "Loss curve: auc" not in page.text


def test_many_rounds_are_thinned(tmp_path: Path) -> None:
    run = XgboostRun(hyperparameters={"objective": "binary:logistic"})
    labels = np.array([0, 1])
    for step in range(2000):
        run.take_predictions(step, labels if not step else None, np.array([0.1, 0.9]))
    section = run.render("x").partition("Accuracy of each diagonal")[2].partition("<h2>")[0]
    assert 200 <= re.findall(r'points="([^"]*)"', section)[0].count(" ") <= 400


def test_a_single_round_is_seen() -> None:
    assert render_lines({"train-auc": [(0.0, 0.7)]}, "round", "auc").count("<circle") == 1
    assert render_lines({"train-auc": [(0.0, 0.7), (1.0, 0.8)]}, "round", "auc").count("<circle") == 0


def test_report_of_a_regression(tmp_path: Path) -> None:
    labels, predictions = np.linspace(0, 5, 50), np.linspace(0.1, 5.3, 50)
    steps = [{"labels": labels, "predictions": predictions, "train-rmse": 1.0, "hyperparameters/<eta>": "a & b"}]
    page = make_report(tmp_path, write_run(tmp_path / "run", steps))
    assert all(heading in page.text for heading in ("Distribution of true labels", *OF_NUMBERS))
    assert f"{np.sqrt(np.mean((labels - predictions) ** 2)):.6g}" in page.text
    assert "ROC curve" not in page.text
    assert "<eta>" in page.text


@pytest.mark.parametrize(
    ("objective", "heading"),
    [("reg:squarederror", "Distribution of residuals"), ("rank:ndcg", ""), ("multi:softmax", "Confusion matrix")],
)
def test_what_is_shown_of_predictions_depends_on_what_is_learned(tmp_path: Path, objective: str, heading: str) -> None:
    grades = np.arange(60) % 5
    scores = grades.astype(np.float32) if objective.startswith("multi") else grades + np.linspace(-0.4, 0.4, 60)
    steps = [{"labels": grades, "predictions": scores, "hyperparameters/objective": objective}]
    page = make_report(tmp_path, write_run(tmp_path / "run", steps))
    found = [each for each in ("Distribution of residuals", "Confusion matrix", "ROC curve") if each in page.text]
    assert found == [heading][: len(heading)]


def test_a_page_about_many_predictions_stays_small(tmp_path: Path) -> None:
    scores = np.linspace(0, 1, 100_000)
    page = make_report(tmp_path, write_run(tmp_path / "run", [{"labels": scores > 0.5, "predictions": scores}]))
    assert "area 1.0000" in page.text
    written = tmp_path / "xgboost_report.html"
    assert written.stat().st_size < 100_000


def test_a_flat_line_of_large_numbers_is_drawn() -> None:
    assert "nan" not in render_lines({"train-rmse": [(0.0, 1e20), (1.0, 1e20)]}, "round", "rmse")


def test_report_is_written_again_at_the_end(tmp_path: Path) -> None:
    page = make_report(tmp_path, write_run(tmp_path / "run", [{"train-rmse": float(step)} for step in range(5)]))
    assert "round 4" in page.text
