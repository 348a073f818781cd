"""Tests of which metrics are losses."""

import pytest

from rules_images.training.xgboost.built_in_algorithm.metrics import MAXIMISED
from smdebug.rules.measuring.losses import is_better_higher


@pytest.mark.parametrize("metric", [*sorted(MAXIMISED), "auc", "ndcg@5-", "map-", "interval-regression-accuracy"])
def test_better_when_higher(metric: str) -> None:
    assert is_better_higher(f"validation-{metric}")


@pytest.mark.parametrize("metric", ["rmse", "mape", "mse", "error@0.7", "logloss", "ndcgloss", "f1loss"])
def test_better_when_lower(metric: str) -> None:
    assert not is_better_higher(f"validation-{metric}")
