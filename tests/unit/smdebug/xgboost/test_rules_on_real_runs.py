"""Tests of the XGBoost rules on saved runs of real trainings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_diabetes, load_digits

import smdebug.xgboost as smd
from smdebug.rules.builtin.class_imbalance import ClassImbalance
from smdebug.rules.builtin.confusion import Confusion
from smdebug.rules.builtin.create_xgboost_report import CreateXgboostReport
from smdebug.rules.builtin.feature_importance_overweight import FeatureImportanceOverweight
from smdebug.rules.builtin.loss_not_decreasing import LossNotDecreasing
from smdebug.rules.builtin.overfit import Overfit
from smdebug.rules.builtin.tree_depth import TreeDepth
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding


def capture(
    out_dir: Path, parameters: dict[str, Any], data: xgboost.DMatrix, other: xgboost.DMatrix, rounds: int
) -> Trial:
    hook = smd.Hook(
        str(out_dir),
        include_collections=["predictions", "labels", "feature_importance", "trees", "losses", "hyperparameters"],
        save_config=smd.SaveConfig(save_interval=5),
        hyperparameters=parameters,
        validation_data=other,
    )
    evals = [(data, "train"), (other, "validation")]
    xgboost.train({"nthread": 1, **parameters}, data, rounds, evals=evals, callbacks=[hook], verbose_eval=False)
    hook.close()
    smd.del_hook()
    return create_trial(str(out_dir))


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Handwritten digits, learned well enough: 95 of 100 right at the last saved round."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    train, held_out = order[400:], order[:400]
    parameters = {"objective": "multi:softprob", "num_class": 10, "max_depth": 3}
    known, other = (xgboost.DMatrix(images[rows], labels[rows]) for rows in (train, held_out))
    return capture(tmp_path_factory.mktemp("digits") / "run", parameters, known, other, 41)


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A regression on few rows, learned by heart by deep trees."""
    features, values = load_diabetes(return_X_y=True)
    known, other = (xgboost.DMatrix(features[rows], values[rows]) for rows in (slice(0, 200), slice(200, None)))
    parameters = {"objective": "reg:squarederror", "max_depth": 8}
    return capture(tmp_path_factory.mktemp("diabetes") / "run", parameters, known, other, 41)


@pytest.mark.slow
def test_confusion(digits: Trial) -> None:
    predictions, labels = (digits.tensor(name).value(40) for name in ("predictions", "labels"))
    right = predictions.argmax(axis=1) == labels
    worst = min(right[labels == number].mean() for number in range(10))
    assert worst > 0.75
    assert 40 not in find_firing(Confusion(digits, min_diag="0.7", max_off_diag="0.25"))
    assert 0 in find_firing(Confusion(digits))


def test_class_imbalance(digits: Trial) -> None:
    assert find_firing(ClassImbalance(digits)) == []
    labels = digits.tensor("labels").value(0)
    most = np.bincount(labels.astype(int))
    rule = ClassImbalance(digits, threshold_imbalance=str(most.max() / most.min() - 0.01), samples="400")
    assert find_firing(rule)[:1] == [0]


def test_tree_depth(digits: Trial, diabetes: Trial) -> None:
    assert find_firing(TreeDepth(digits, depth="3")) == []
    assert find_firing(TreeDepth(digits, depth="2"))[:1] == [0]
    assert find_firing(TreeDepth(diabetes))[:1] == [0]
    # The documented formula, which counts fewer levels than a lopsided tree has: XGBoost's numbers leave nothing out.
    rule = TreeDepth(diabetes, depth="5")
    assert find_firing(rule) != []
    finding = get_finding(rule)
    assert finding.value == int(np.log2(diabetes.tensor("trees/Node").value(finding.step).max()))


def test_feature_importance_overweight(digits: Trial) -> None:
    assert find_firing(FeatureImportanceOverweight(digits)) == []
    rule = FeatureImportanceOverweight(digits, threshold="0.1")
    assert find_firing(rule)[:1] == [0]


def test_losses(digits: Trial, diabetes: Trial) -> None:
    assert find_firing(LossNotDecreasing(digits, num_steps="5")) == []
    assert find_firing(Overfit(diabetes)) != []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "digits",
            [
                "Loss curve: mlogloss",
                "Confusion matrix",
                "Feature importance: total_cover",
                "multi:softprob",
                "class 9",
            ],
        ),
        (
            "diabetes",
            [
                "Loss curve: rmse",
                "Distribution of residuals",
                "Absolute validation error by label bin",
                "Feature importance: weight",
                "reg:squarederror",
            ],
        ),
    ],
)
def test_report(request: pytest.FixtureRequest, tmp_path: Path, name: str, words: list[str]) -> None:
    rule = CreateXgboostReport(request.getfixturevalue(name))
    rule.output_dir = tmp_path
    assert find_firing(rule) == []
    page = rule.path.read_text()
    assert [word for word in words if word not in page] == []
