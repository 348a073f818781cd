"""Hooks that end with their test, and real data for XGBoost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import xgboost
from sklearn.datasets import load_breast_cancer

import smdebug.xgboost as smd

if TYPE_CHECKING:
    from tests.unit.smdebug.written_run import WrittenRun

MakeHook = Callable[..., smd.Hook]

BINARY = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "max_depth": 3, "eta": 0.3, "nthread": 1}


class Cancer(NamedTuple):
    """Wisconsin's breast cancer data, 30 features: 400 rows to learn from and 169 to judge by."""

    train: xgboost.DMatrix
    validation: xgboost.DMatrix

    @property
    def evals(self) -> list[tuple[xgboost.DMatrix, str]]:
        return [(self.train, "train"), (self.validation, "validation")]


@pytest.fixture(scope="session")
def cancer() -> Cancer:
    features, labels = load_breast_cancer(return_X_y=True)
    return Cancer(xgboost.DMatrix(features[:400], labels[:400]), xgboost.DMatrix(features[400:], labels[400:]))


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    hooks: list[smd.Hook] = []

    def make(interval: int = 1, **arguments: Any) -> smd.Hook:
        arguments.setdefault("save_config", smd.SaveConfig(save_interval=interval))
        arguments.setdefault("out_dir", str(run.path))
        hook = smd.Hook(**arguments)
        hooks.append(hook)
        return hook

    yield make
    for hook in hooks:
        hook.close()
    smd.del_hook()


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
