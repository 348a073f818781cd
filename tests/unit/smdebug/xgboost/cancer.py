"""Breast cancer data for XGBoost, and trainings on it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import xgboost

import smdebug.xgboost as smd

MakeHook = Callable[..., smd.Hook]
BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "max_depth": 3, "eta": 0.3, "nthread": 1}


class Cancer(NamedTuple):
    """Wisconsin's breast cancer data, 30 features: 400 rows to learn from and 169 to judge by."""

    train: xgboost.DMatrix
    validation: xgboost.DMatrix

    @property
    def evals(self) -> list[tuple[xgboost.DMatrix, str]]:
        return [(self.train, "train"), (self.validation, "validation")]


def train(
    data: Cancer, hook: smd.Hook, rounds: int = 4, parameters: dict[str, Any] | None = None, **arguments: Any
) -> tuple[xgboost.Booster, dict[str, Any]]:
    """A training with the hook; returns the booster and XGBoost's own record of its metrics."""
    history: dict[str, Any] = {}
    booster = xgboost.train(
        BINARY if parameters is None else parameters,
        data.train,
        rounds,
        **{"evals": data.evals, "callbacks": [hook], "evals_result": history, "verbose_eval": False, **arguments},
    )
    return booster, history
