"""Tests of the newest round's trees, which are read in two ways."""

from collections.abc import Mapping

import numpy as np
import pytest
import xgboost

from smdebug.xgboost import trees


@pytest.mark.parametrize(
    ("parameters", "number"),
    [
        ({"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2}, 6),
        ({"booster": "dart", "rate_drop": 0.5, "seed": 1}, 1),
        ({"objective": "binary:logistic"}, 1),
    ],
)
def test_the_trees_of_the_whole_model_are_those_of_a_cut_one(
    parameters: Mapping[str, object], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).random((90, 4))
    labels = np.arange(90) % (3 if number == 6 else 2)
    booster = xgboost.train({"nthread": 1, **parameters}, xgboost.DMatrix(rows, labels), 3)
    cut = trees.get_newest_trees(booster, list("abcd"))
    # As on several hosts before XGBoost 2.1, where a cut model would ask the others.
    monkeypatch.setattr(trees, "_talks_when_cut", lambda: True)
    whole = trees.get_newest_trees(booster, list("abcd"))
    assert sorted(set(whole["Tree"])) == list(range(2 * number, 3 * number))
    assert whole.keys() == cut.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(values, cut[name], err_msg=name)


def test_a_model_is_cut_where_no_host_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xgboost.collective, "get_world_size", lambda: 2)
    asks = {}
    for version in ("1.7.6", "2.0.3", "2.1.0", "3.2.0"):
        monkeypatch.setattr(xgboost, "__version__", version)
        asks[version] = trees._talks_when_cut()
    assert asks == {"1.7.6": True, "2.0.3": True, "2.1.0": False, "3.2.0": False}
    monkeypatch.setattr(xgboost, "__version__", "1.7.6")
    monkeypatch.setattr(xgboost.collective, "get_world_size", lambda: 1)
    assert not trees._talks_when_cut()
