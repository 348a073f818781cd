"""Tests of saved tensors, against XGBoost's own values."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import xgboost

import smdebug.xgboost as smd
from smdebug.trials import create_trial
from smdebug.xgboost.models import IMPORTANCE_TYPES
from tests.unit.smdebug.written_run import WrittenRun
from tests.unit.smdebug.xgboost.cancer import BINARY, Cancer, MakeHook, train


@pytest.fixture
def make_full_hook(make_hook: MakeHook, cancer: Cancer) -> MakeHook:
    def make(**arguments: Any) -> smd.Hook:
        given = {
            "save_all": True,
            "hyperparameters": BINARY,
            "train_data": cancer.train,
            "validation_data": cancer.validation,
        }
        return make_hook(**{**given, **arguments})

    return make


def test_a_hook_by_default_saves_metrics_at_every_tenth_round(
    make_hook: MakeHook, cancer: Cancer, run: WrittenRun
) -> None:
    _, history = train(cancer, make_hook(save_config=None), rounds=12)
    assert run.steps == [0, 10]
    for step in run.steps:
        saved = run.values(step)
        assert set(saved) == {"train-logloss", "train-auc", "validation-logloss", "validation-auc"}
        for name, value in saved.items():
            data, metric = name.split("-")
            assert value.shape == (1,)
            assert value[0] == history[data][metric][step]
    collections = run.collections()["collections"]
    assert set(collections["metrics"]["tensor_names"]) == set(saved)
    assert run.index(10)["meta"]["mode"] == "GLOBAL"


def test_losses_alone_leave_out_what_is_maximised(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    train(cancer, make_hook(include_collections=["losses"], interval=10**6), rounds=1)
    # The collection metrics is always saved.
    assert set(run.values(0)) == {"train-logloss", "train-auc", "validation-logloss", "validation-auc"}
    assert run.collections()["collections"]["losses"]["tensor_names"] == ["train-logloss", "validation-logloss"]


def test_hyperparameters(make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_full_hook(hyperparameters={**BINARY, "absent": None, "tuple": (1, 2), "odd": {"a": 1}, "big": 2**70})
    train(cancer, hook, rounds=1)
    saved = {
        name.removeprefix("hyperparameters/"): list(value)
        for name, value in run.values(0).items()
        if name.startswith("hyperparameters/")
    }
    assert saved == {
        "objective": ["binary:logistic"],
        "eval_metric": ["logloss", "auc"],
        "max_depth": [3],
        "eta": [0.3],
        "nthread": [1],
        "tuple": [1, 2],
        "odd": ["{'a': 1}"],
        "big": [str(2**70)],
    }


def test_predictions_labels_importances_and_contributions(
    make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun
) -> None:
    booster, _ = train(cancer, make_full_hook(interval=2), rounds=5)
    assert run.steps == [0, 2, 4]
    for step in run.steps:
        saved = run.values(step)
        model = booster[: step + 1]
        np.testing.assert_array_equal(saved["predictions"], model.predict(cancer.validation))
        np.testing.assert_array_equal(saved["labels"], cancer.validation.get_label())
        for kind in IMPORTANCE_TYPES:
            scores: dict[str, Any] = model.get_score(importance_type=kind)
            prefix = f"feature_importance/{kind}/"
            assert {name for name in saved if name.startswith(prefix)} == {f"{prefix}{name}" for name in scores}
            for feature, score in scores.items():
                assert saved[f"{prefix}{feature}"] == pytest.approx([score / sum(scores.values())])
        contributions = model.predict(cancer.train, pred_contribs=True)
        for at, feature in enumerate([*(f"f{number}" for number in range(30)), "bias"]):
            np.testing.assert_array_equal(saved[f"full_shap/{feature}"], contributions)
            assert saved[f"average_shap/{feature}"].shape == (1,)
            assert saved[f"average_shap/{feature}"].dtype == np.float32
            assert saved[f"average_shap/{feature}"][0] == np.float32(contributions[:, at].mean(dtype=np.float64))


def test_a_feature_that_is_called_bias(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    features = np.random.default_rng(0).random((50, 3))
    data = xgboost.DMatrix(features, 3 * features[:, 0], feature_names=["bias", "bias_1", "x"])
    hook = make_hook(include_collections=["average_shap", "feature_importance"], train_data=data)
    booster = xgboost.train({"nthread": 1}, data, 1, callbacks=[hook])
    of_features = booster.predict(data, pred_contribs=True).mean(axis=0, dtype=np.float64)
    saved = run.values(0)
    for name, expected in zip(("bias_2", "bias_1", "x"), of_features, strict=False):
        assert saved[f"average_shap/{name}"][0] == np.float32(expected)
    assert "average_shap/bias" not in saved, "the collection leaves the model's own bias out"
    assert "feature_importance/gain/bias" in saved
    assert [record.message for record in said.records if record.levelname == "WARNING"] == [
        "SHAP values of the feature bias are saved as bias_2: the model has a bias of its own."
    ]


def get_frame(booster: Any, numbers: Any) -> Any:
    frame = booster.trees_to_dataframe()
    return frame[frame.Tree.isin(numbers)]


def check_trees(saved: Any, frame: Any) -> None:
    assert {name.removeprefix("trees/") for name in saved if name.startswith("trees/")} == set(frame.columns)
    for column in ("Tree", "Node"):
        assert saved[f"trees/{column}"].tolist() == frame[column].tolist()
        assert saved[f"trees/{column}"].dtype == np.int64
    for column in ("ID", "Feature", "Yes", "No", "Missing"):
        assert list(saved[f"trees/{column}"]) == ["nan" if text != text else text for text in frame[column].tolist()]
    for column in ("Split", "Gain", "Cover"):
        assert saved[f"trees/{column}"].dtype == np.float64
        np.testing.assert_array_equal(
            saved[f"trees/{column}"].astype(np.float32), frame[column].to_numpy().astype(np.float32)
        )
    given = [each if isinstance(each, list) else "nan" for each in frame["Category"].tolist()]
    assert [text.replace("'", "") for text in saved["trees/Category"]] == [str(each).replace("'", "") for each in given]


@pytest.mark.parametrize("parameters", [{}, {"tree_method": "exact", "gamma": 2}, {"num_parallel_tree": 3}])
def test_trees(make_hook: MakeHook, cancer: Cancer, run: WrittenRun, parameters: dict[str, Any]) -> None:
    booster, _ = train(cancer, make_hook(include_collections=["trees"]), parameters={**BINARY, **parameters})
    each = parameters.get("num_parallel_tree", 1)
    for step in run.steps:
        check_trees(run.values(step), get_frame(booster, range(step * each, (step + 1) * each)))


def test_trees_of_several_classes_and_categories(make_hook: MakeHook, run: WrittenRun) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdef"), 300)
    table = pd.DataFrame({"letter": pd.Categorical(letters), "whole": rng.integers(0, 50, 300), "x y": rng.random(300)})
    labels = np.isin(letters, ["b", "e"]) + 2 * (table.whole.to_numpy() > 25) * (rng.random(300) < 0.9)
    data = xgboost.DMatrix(table, np.minimum(labels, 2), enable_categorical=True)
    hook = make_hook(include_collections=["trees", "average_shap"], train_data=data)
    parameters = {"objective": "multi:softprob", "num_class": 3, "max_cat_to_onehot": 1, "nthread": 1}
    booster = xgboost.train(parameters, data, 2, callbacks=[hook])
    for step in (0, 1):
        check_trees(run.values(step), get_frame(booster, range(3 * step, 3 * step + 3)))
    contributions = booster.predict(data, pred_contribs=True)
    assert contributions.shape == (300, 3, 4)
    for at, feature in enumerate(["letter", "whole", "x y"]):
        saved = run.values(1)[f"average_shap/{feature}"]
        assert saved[0] == np.float32(contributions[..., at].mean(dtype=np.float64))


def test_nothing_is_computed_that_is_not_due(
    make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def watch(name: str) -> None:
        method = getattr(xgboost.Booster, name)

        def record(*args: Any, **named: Any) -> Any:
            asked.append(name)
            return method(*args, **named)

        monkeypatch.setattr(xgboost.Booster, name, record)

    for name in ("predict", "get_score", "save_raw"):
        watch(name)
    monkeypatch.setattr(xgboost.DMatrix, "get_label", lambda _: asked.append("get_label"))
    hook = make_full_hook(save_all=False, include_collections=["metrics", "hyperparameters"])
    train(cancer, hook, rounds=3)
    assert run.steps == [0, 1, 2]
    assert asked == []
    hook.get_collection("predictions").save_config = smd.SaveConfig(save_steps=[4], end_step=0)
    hook.get_collection("feature_importance").save_config = smd.SaveConfig(save_steps=[5], end_step=0)
    hook.include_collections += ["predictions", "feature_importance"]
    train(cancer, hook, rounds=4)
    assert asked == ["predict", *["get_score"] * len(IMPORTANCE_TYPES)]


def test_a_second_training_counts_on(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_hook()
    train(cancer, hook, rounds=2)
    _, history = train(cancer, hook, rounds=3)
    assert run.steps == [0, 1, 2, 3, 4]
    assert run.values(4)["train-logloss"][0] == history["train"]["logloss"][2]


def test_a_second_training_on_other_features(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["average_shap"])
    for names in (["p", "q"], ["is", "was"]):
        hook.train_data = xgboost.DMatrix(np.arange(20.0).reshape(10, 2), np.arange(10), feature_names=names)
        xgboost.train({"nthread": 1}, hook.train_data, 1, callbacks=[hook])
    # Upstream's regex leaves out what ends in one of `abis`, the bias on purpose.
    assert [sorted(run.values(step)) for step in (0, 1)] == [
        ["average_shap/p", "average_shap/q"],
        ["average_shap/is", "average_shap/was"],
    ]


def test_each_round_is_there_when_it_is_over(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    seen = []

    class Look(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> Any:
            seen.append(run.steps)
            return False

    train(cancer, make_hook(), rounds=3, callbacks=[make_hook(), Look()])
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_values_of_the_script_join_the_round(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_hook()
    hook.save_scalar("before", 1.5)
    hook.save_tensor("mine", np.arange(3), "custom")
    hook.include_collections.append("custom")
    train(cancer, hook, rounds=2)
    hook.save_scalar("after", 2.5)
    hook.close()
    assert run.values(0)["scalar/before"] == [1.5]
    assert run.values(0)["mine"].tolist() == [0, 1, 2]
    assert {"scalar/after", "train-auc"} <= set(run.values(1))


def test_scalars_between_saved_rounds_join_the_next_one(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=2))

    class Saving(xgboost.callback.TrainingCallback):
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            hook.save_scalar(f"round_{epoch}", epoch)
            return False

    train(cancer, hook, rounds=4, callbacks=[hook, Saving()])
    hook.close()
    found = {step: {name for name in run.values(step) if "scalar" in name} for step in run.steps}
    assert found == {0: {"scalar/round_0"}, 2: {"scalar/round_1", "scalar/round_2"}, 3: {"scalar/round_3"}}


def test_tensorboard(make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    train(cancer, make_full_hook(export_tensorboard=True), rounds=2)
    assert len(list(run.path.glob("tensorboard/GLOBAL/*.tfevents"))) == 2


def test_reductions_are_not_made(
    make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    from smdebug import ReductionConfig

    train(cancer, make_full_hook(reduction_config=ReductionConfig(reductions=["mean"])), rounds=1)
    assert "predictions" in run.values(0)
    assert not any("reductions" in name for name in run.values(0))
    assert [record.message for record in said.records] == [
        "reduction_config is not used: of XGBoost everything is saved as it is."
    ]


def test_a_hook_is_neither_copied_nor_pickled(make_hook: MakeHook) -> None:
    hook = make_hook()
    assert copy.deepcopy([hook]) == [hook]
    assert copy.copy(hook) is hook
    assert pickle.loads(pickle.dumps(hook)) is hook
    text = pickle.dumps(hook)
    smd.del_hook()
    assert type(pickle.loads(text)) is xgboost.callback.TrainingCallback


def test_a_trial_finds_its_collections(make_full_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    hook = make_full_hook()
    train(cancer, hook, rounds=1)
    hook.close()
    trial = create_trial(str(run.path))
    assert trial.tensor_names(collection="predictions") == ["predictions"]
    assert len(trial.tensor_names(collection="average_shap")) == 30
    assert len(trial.tensor_names(collection="trees")) == 11
