"""Fixtures of hooks that end with their test, and of real data."""

from collections.abc import Iterator
from typing import Any

import pytest
import xgboost
from sklearn.datasets import load_breast_cancer

import smdebug.xgboost as smd
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.written_run import WrittenRun
from tests.unit.smdebug.xgboost.cancer import Cancer, MakeHook


@pytest.fixture(scope="session")
def cancer() -> Cancer:
    features, labels = load_breast_cancer(return_X_y=True)
    return Cancer(xgboost.DMatrix(features[:400], labels[:400]), xgboost.DMatrix(features[400:], labels[400:]))


@pytest.fixture
def make_hook(run: WrittenRun) -> Iterator[MakeHook]:
    def build(interval: int = 1, **arguments: Any) -> smd.Hook:
        config = smd.SaveConfig(save_interval=interval)
        return smd.Hook(**{"out_dir": str(run.path), "save_config": config, **arguments})

    with closing_hooks(build) as make:
        yield make
