"""Tests of our XGBoost runs, read by the real smdebug 1.0.34.

Their layout is that of the runs that it writes itself.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer

import smdebug.xgboost as smd
from smdebug.trials import create_trial
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream

PARAMETERS = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "max_depth": 2, "nthread": 1}


def write_everything(out_dir: str) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    data = xgboost.DMatrix(features[:60, :4], labels[:60])
    other = xgboost.DMatrix(features[60:80, :4], labels[60:80])
    hook = smd.Hook(
        out_dir,
        save_all=True,
        save_config=smd.SaveConfig(save_interval=2),
        hyperparameters=PARAMETERS,
        train_data=data,
        validation_data=other,
    )
    evals = [(data, "train"), (other, "validation")]
    xgboost.train(PARAMETERS, data, 4, evals=evals, callbacks=[hook], verbose_eval=False)
    hook.save_scalar("late", 1.0)
    hook.close()


def write_default(out_dir: str) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    hook = smd.Hook(out_dir, include_collections=["losses", "feature_importance"])
    estimator = xgboost.XGBClassifier(n_estimators=12, max_depth=2, n_jobs=1, callbacks=[hook])
    estimator.fit(features, labels, eval_set=[(features, labels)], verbose=False)
    hook.close()


def write_cross_validation(out_dir: str) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    hook = smd.Hook(out_dir, include_collections=["predictions", "labels", "average_shap"])
    xgboost.cv(PARAMETERS, xgboost.DMatrix(features, labels), 2, nfold=2, callbacks=[hook])
    hook.close()


def without_features(name: str) -> str:
    is_importance = name.startswith("feature_importance/")
    return name.rpartition("/")[0] if is_importance or name.startswith(("hyperparameters/", "scalar/")) else name


@pytest.mark.parametrize("write", [write_everything, write_default, write_cross_validation])
def test_upstream_reads_the_same(write: Callable[[str], None], tmp_path: Path, upstream: Upstream) -> None:
    out_dir = str(tmp_path / "run")
    write(out_dir)
    original, ours = upstream.read_run(out_dir), read_ours(create_trial(out_dir))
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original


def test_names_types_and_shapes_are_those_of_upstream(tmp_path: Path, recorded_runs: Path) -> None:
    recorded = create_trial(str(recorded_runs / "xgb_all" / "run"))
    out_dir = str(tmp_path / "run")
    write_everything(out_dir)
    ours = create_trial(out_dir)
    # Features that no tree uses have no importance, and parameters are whatever they are called.
    names = [{without_features(name) for name in trial.tensor_names()} for trial in (ours, recorded)]
    assert names[0] - {"scalar"} == names[1]
    for name in sorted(set(ours.tensor_names(step=2)) & set(recorded.tensor_names(step=2))):
        mine, other = (np.asarray(trial.tensor(name).value(2)) for trial in (ours, recorded))
        assert mine.dtype == other.dtype or mine.dtype.kind == other.dtype.kind == "U", name
        assert mine.ndim == other.ndim, name
    regexes = [{n: found.include_regex for n, found in trial.collections().items()} for trial in (ours, recorded)]
    assert regexes[0] == regexes[1]
    for step in (0, 2):
        assert set(ours.tensor("trees/Tree").value(step)) == {step}
