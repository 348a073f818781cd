"""Tests of the built-in algorithm's metrics."""

import numpy as np
import pytest
import xgboost

from rules_images.training.xgboost.built_in_algorithm.metrics import make_metric
from rules_images.training.xgboost.built_in_algorithm.training import is_maximised


@pytest.mark.parametrize(
    ("metric", "maximised"), [("ndcg@5-", True), ("map-", True), ("f1_macro", True), ("mape", False), ("rmse", False)]
)
def test_early_stopping_knows_which_metrics_rise(metric: str, maximised: bool) -> None:
    assert is_maximised(metric) is maximised


@pytest.mark.parametrize(("objective", "expected"), [("binary:logitraw", 1.0), ("binary:logistic", 0.5)])
def test_a_logit_above_zero_is_class_1(objective: str, expected: float) -> None:
    data = xgboost.DMatrix(np.zeros((2, 1)), label=[1, 0])
    judge = make_metric(["accuracy"], {"objective": objective})
    assert judge(np.array([0.3, -0.2]), data) == [("accuracy", expected)]
