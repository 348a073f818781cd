"""Tests of every XGBoost training API, each on suitable data."""

from typing import Any

import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import cross_val_score

from tests.unit.smdebug.written_run import WrittenRun
from tests.unit.smdebug.xgboost.cancer import BINARY, Cancer, MakeHook, train

EVERYTHING = {"save_all": True}


def split(features: np.ndarray, labels: np.ndarray, rows: int) -> Cancer:
    return Cancer(xgboost.DMatrix(features[:rows], labels[:rows]), xgboost.DMatrix(features[rows:], labels[rows:]))


@pytest.fixture(scope="module")
def digits() -> Cancer:
    features, labels = load_digits(return_X_y=True)
    return split(features, labels, rows=1400)


@pytest.fixture(scope="module")
def diabetes() -> Cancer:
    features, labels = load_diabetes(return_X_y=True)
    return split(features, labels, rows=350)


def test_classes(make_hook: MakeHook, digits: Cancer, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["predictions", "labels", "average_shap"], validation_data=digits.validation)
    hook.train_data = digits.validation.slice(list(range(50)))
    parameters = {"objective": "multi:softprob", "num_class": 10, "eval_metric": "merror", "nthread": 1}
    booster, _ = train(digits, hook, parameters={**parameters, "max_depth": 3}, rounds=8)
    saved = run.values(7)
    assert saved["predictions"].shape == (397, 10)
    np.testing.assert_array_equal(saved["predictions"], booster.predict(digits.validation))
    right = (saved["predictions"].argmax(axis=1) == saved["labels"]).mean()
    assert right > 0.75
    assert 1 - right == pytest.approx(saved["validation-merror"][0], abs=1e-6)
    assert {"average_shap/f10", "train-merror"} <= set(saved)


@pytest.mark.parametrize("booster", ["gbtree", "dart", "gblinear"])
def test_boosters_of_a_regression(
    make_hook: MakeHook, diabetes: Cancer, run: WrittenRun, said: pytest.LogCaptureFixture, booster: str
) -> None:
    hook = make_hook(**EVERYTHING, train_data=diabetes.train, validation_data=diabetes.validation)
    parameters = {"objective": "reg:squarederror", "booster": booster, "nthread": 1, "max_depth": 2}
    if booster == "gblinear":
        parameters.pop("max_depth")
    model, history = train(diabetes, hook, parameters=parameters, rounds=3)
    saved = run.values(2)
    np.testing.assert_array_equal(saved["predictions"], model.predict(diabetes.validation))
    np.testing.assert_array_equal(saved["full_shap/f3"], model.predict(diabetes.train, pred_contribs=True))
    assert saved["validation-rmse"][0] == history["validation"]["rmse"][2]
    has_trees = booster != "gblinear"
    assert ("trees/Node" in saved) == has_trees
    assert any(name.startswith("feature_importance/gain/") for name in saved) == has_trees
    assert any(name.startswith("feature_importance/weight/") for name in saved)
    lost = [record.message for record in said.records if record.message.startswith("Not saved")]
    assert len(lost) == (0 if has_trees else 2), lost


def test_a_ranking(make_hook: MakeHook, run: WrittenRun) -> None:
    rng = np.random.default_rng(0)
    features = rng.random((120, 5))
    relevance = np.clip((features[:, 0] * 4).astype(int), 0, 3)
    data = xgboost.DMatrix(features, relevance, qid=np.repeat(np.arange(12), 10))
    parameters = {"objective": "rank:ndcg", "eval_metric": ["ndcg@5", "rmse"], "nthread": 1}
    hook = make_hook(validation_data=data, include_collections=["labels", "predictions", "losses"])
    _, history = train(Cancer(data, data), hook, parameters=parameters, rounds=2, evals=[(data, "train")])
    saved = run.values(1)
    assert set(saved) == {"train-ndcg@5", "train-rmse", "labels", "predictions"}
    assert saved["train-ndcg@5"][0] == history["train"]["ndcg@5"][1]
    collections = run.collections()["collections"]
    assert collections["metrics"]["tensor_names"] == ["train-ndcg@5", "train-rmse"]


def test_quantile_matrices(make_hook: MakeHook, run: WrittenRun) -> None:
    features, labels = load_diabetes(return_X_y=True)
    data = xgboost.QuantileDMatrix(features[:350], labels[:350])
    other = xgboost.QuantileDMatrix(features[350:], labels[350:], ref=data)
    hook = make_hook(include_collections=["predictions", "average_shap"], train_data=data, validation_data=other)
    model, _ = train(Cancer(data, other), hook, parameters={"nthread": 1}, rounds=2)
    np.testing.assert_array_equal(run.values(1)["predictions"], model.predict(other))
    assert "average_shap/f0" in run.values(1)


def test_several_targets(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    features, labels = load_diabetes(return_X_y=True)
    data = xgboost.DMatrix(features, np.stack([labels, -labels], axis=1))
    hook = make_hook(**EVERYTHING, train_data=data, validation_data=data)
    parameters = {"multi_strategy": "multi_output_tree", "nthread": 1}
    train(Cancer(data, data), hook, parameters=parameters, rounds=2, evals=[(data, "train")])
    saved = run.values(1)
    assert saved["labels"].shape == saved["predictions"].shape == (442, 2)
    assert "train-rmse" in saved
    lost = [record.message.partition(" (")[0] for record in said.records]
    assert lost == ["Not saved: trees", "Not saved: SHAP values"]


def test_features_with_names_of_any_kind(make_hook: MakeHook, run: WrittenRun) -> None:
    names = ["a/b", "q_alibi", 'say "x"', "größe", "bias and more"]
    rng = np.random.default_rng(0)
    data = xgboost.DMatrix(rng.random((60, 5)), rng.random(60), feature_names=names)
    hook = make_hook(include_collections=["average_shap", "full_shap", "feature_importance", "trees"], train_data=data)
    train(Cancer(data, data), hook, parameters={"nthread": 1}, rounds=1, evals=[(data, "odd/näme.1")])
    saved = run.values(0)
    assert "odd/näme.1-rmse" in saved
    for name in names:
        assert {f"average_shap/{name}", f"full_shap/{name}", f"feature_importance/gain/{name}"} <= set(saved)
    assert set(saved["trees/Feature"]) - {"Leaf"} <= set(names)
    assert run.collections()["collections"]["metrics"]["tensor_names"] == ["odd/näme.1-rmse"]


def test_early_stopping(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_hook(interval=1)
    model, history = train(cancer, hook, parameters={**BINARY, "eta": 3.0}, rounds=50, early_stopping_rounds=2)
    assert model.num_boosted_rounds() < 50
    assert run.steps == list(range(model.num_boosted_rounds()))
    assert run.values(run.steps[-1])["validation-auc"] == history["validation"]["auc"][-1]


def test_an_estimator_of_scikit_learn(make_hook: MakeHook, run: WrittenRun) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    hook = make_hook(interval=5)
    estimator = xgboost.XGBClassifier(n_estimators=10, max_depth=2, n_jobs=1, callbacks=[hook])
    evals = [(features[:400], labels[:400]), (features[400:], labels[400:])]
    estimator.fit(*evals[0], eval_set=evals, verbose=False)
    assert estimator.score(*evals[1]) > 0.9
    saved = run.values(5)
    assert set(saved) == {"validation_0-logloss", "validation_1-logloss"}
    assert saved["validation_1-logloss"][0] == estimator.evals_result()["validation_1"]["logloss"][5]
    collections = run.collections()["collections"]
    assert collections["losses"]["tensor_names"] == ["validation_0-logloss", "validation_1-logloss"]


def test_clones_of_an_estimator_share_its_hook(make_hook: MakeHook, run: WrittenRun) -> None:
    features, labels = load_diabetes(return_X_y=True)
    estimator = xgboost.XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1, callbacks=[make_hook(save_all=True)])
    assert clone(estimator).callbacks == estimator.callbacks
    assert len(cross_val_score(estimator, features, labels, cv=3)) == 3
    # Three trainings of two rounds, one after the other.
    assert run.steps == list(range(6))


def test_a_cross_validation(
    make_hook: MakeHook, cancer: Cancer, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(**EVERYTHING)
    result: Any = xgboost.cv({**BINARY}, cancer.train, 3, nfold=4, callbacks=[hook], seed=0, as_pandas=False)
    assert run.steps == [0, 1, 2]
    saved = run.values(2)
    for metric in ("train-logloss", "train-auc", "test-logloss", "test-auc"):
        assert saved[metric][0] == result[f"{metric}-mean"][2]
        assert saved[f"std/{metric}"][0] == result[f"{metric}-std"][2]
    # Every row is predicted by the one booster that did not learn from it.
    assert saved["predictions"].shape == saved["labels"].shape == (400,)
    assert sorted(saved["labels"]) == sorted(cancer.train.get_label())
    assert ((saved["predictions"] > 0.5) == saved["labels"]).mean() > 0.85
    shares = [value[0] for name, value in saved.items() if name.startswith("feature_importance/gain/")]
    assert sum(shares) == pytest.approx(1)
    assert saved["full_shap/f0"].shape == (400, 31)
    assert [record.message.partition(" (")[0] for record in said.records] == ["Not saved: trees"]
