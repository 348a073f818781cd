"""Tests of incomplete and failing trainings: partial capture, and no harm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

import smdebug.xgboost as smd
from smdebug.exceptions import InvalidCollectionConfiguration, SMDebugTypeError, SMDebugValueError
from tests.unit.smdebug.written_run import WrittenRun
from tests.unit.smdebug.xgboost.cancer import BINARY, Cancer, MakeHook, train


def get_lost(said: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in said.records if record.levelname in ("WARNING", "ERROR")]


def test_no_evaluation_set_and_no_data(
    make_hook: MakeHook, cancer: Cancer, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    booster, _ = train(cancer, make_hook(save_all=True), rounds=2, evals=[])
    assert booster.num_boosted_rounds() == 2
    assert all(name.startswith(("trees/", "feature_importance/")) for name in run.values(1))
    assert get_lost(said) == [
        "Not saved: predictions. The hook has no validation_data; training goes on.",
        "Not saved: labels. The hook has no validation_data; training goes on.",
        "Not saved: SHAP values. The hook has no train_data; training goes on.",
    ]


def test_an_old_version_is_reported(
    make_hook: MakeHook, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xgboost, "__version__", "1.5.2")
    make_hook()
    (warning,) = get_lost(said)
    assert "XGBoost 1.5.2 is not supported by this hook, which needs 1.7 or later" in warning


def test_a_metric_that_is_not_a_number(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    def metric(predictions: Any, data: Any) -> Any:
        return "odd", float("nan")

    train(cancer, make_hook(), rounds=2, custom_metric=metric)
    assert np.isnan(run.values(1)["train-odd"][0])
    assert run.values(1)["train-auc"][0] > 0.9


def test_a_training_without_rows(make_hook: MakeHook, run: WrittenRun) -> None:
    empty = xgboost.DMatrix(np.empty((0, 3)), np.empty(0))
    hook = make_hook(save_all=True, train_data=empty, validation_data=empty)
    with pytest.warns(UserWarning, match="Empty dataset"):
        booster = xgboost.train({"nthread": 1}, empty, 1, callbacks=[hook])
    assert booster.num_boosted_rounds() == 1
    assert not {"predictions", "labels"} & set(run.values(0))


def test_data_that_does_not_fit(
    make_hook: MakeHook, cancer: Cancer, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    other = xgboost.DMatrix(np.zeros((4, 2)), np.zeros(4))
    booster, _ = train(cancer, make_hook(save_all=True, train_data=other, validation_data=other), rounds=2)
    assert booster.num_boosted_rounds() == 2
    assert {"labels", "train-auc"} <= set(run.values(1))
    # XGBoost predicts all the same; explaining it cannot.
    assert [text.partition(" (")[0] for text in get_lost(said)] == ["Not saved: SHAP values"]
    assert "SHAP values (SMDebugError: Check failed" in get_lost(said)[0]
    assert "Stack trace" not in "".join(get_lost(said))


def test_a_crash_keeps_the_rounds_before_it(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    class Crash(xgboost.callback.TrainingCallback):
        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> Any:
            if epoch == 3:
                raise RuntimeError("crash")
            return False

    hook = make_hook()
    with pytest.raises(RuntimeError, match="crash"):
        train(cancer, hook, rounds=9, callbacks=[hook, Crash()])
    assert run.steps == [0, 1, 2]
    hook.close()
    assert run.has_ended


def test_a_disk_that_is_full(
    make_hook: MakeHook,
    cancer: Cancer,
    run: WrittenRun,
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from smdebug.writing import step_writer

    def refuse(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step_writer, "open_output", refuse)
    booster, _ = train(cancer, make_hook(), rounds=3)
    assert booster.num_boosted_rounds() == 3
    assert len(get_lost(said)) == 1
    assert "No space left" in get_lost(said)[0]


def test_a_collection_that_selects_nothing_is_reported_to_its_author(make_hook: MakeHook, cancer: Cancer) -> None:
    hook = make_hook(include_collections=["mine"])
    hook.get_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration):
        train(cancer, hook)


def test_markers_in_a_folder_of_data_are_left_out(tmp_path: Path, make_hook: MakeHook) -> None:
    files = {"a.csv": "1,0.5\n", "_SUCCESS": "", ".a.csv.crc": "x", "empty.csv": "", "b.csv": "0,2\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    data = make_hook(train_data=(str(tmp_path), "csv")).train_data
    assert data is not None
    assert data.get_label().tolist() == [1, 0]
    (tmp_path / "c.csv").write_text("1,2,3\n")
    with pytest.raises(SMDebugValueError, match=f"train_data: {tmp_path} cannot be read as csv: "):
        make_hook(train_data=(str(tmp_path), "csv"))


def test_data_in_files(make_hook: MakeHook, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,0.5,2\n0,,3\n")
    (tmp_path / "b.libsvm").write_text("1:0.5 qid:1 0:0.5 2:7 # row\n\n0 1:3\n")
    hook = make_hook(
        train_data=(str(tmp_path / "a.csv"), "text/csv"), validation_data=(str(tmp_path / "b.libsvm"), "text/libsvm")
    )
    train_data, validation_data = hook.train_data, hook.validation_data
    assert train_data is not None
    assert validation_data is not None
    assert train_data.get_label().tolist() == [1, 0]
    assert (train_data.num_row(), train_data.num_col(), train_data.num_nonmissing()) == (2, 2, 3)
    assert validation_data.get_label().tolist() == [1, 0]
    assert (validation_data.num_col(), validation_data.num_nonmissing()) == (3, 3)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2]], SMDebugTypeError, "train_data is a DMatrix or a pair"),
        (("nowhere", "text/csv"), SMDebugValueError, "nowhere holds no file"),
        (("nowhere", "parquet"), SMDebugValueError, "'parquet' is none of csv"),
    ],
)
def test_data_of_other_kinds(make_hook: MakeHook, data: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make_hook(train_data=data)


def test_a_hook_of_the_job(tmp_path: Path, run: WrittenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(f'{{"LocalPath": "{run.path}"}}')
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "config.json"))
    hook = smd.get_hook()
    assert isinstance(hook, smd.Hook)
    try:
        assert smd.get_hook() is hook
        assert hook.save_config.get_save_config(smd.modes.GLOBAL).save_interval == 10
    finally:
        hook.close()
        smd.del_hook()
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "missing.json"))
    assert smd.get_hook() is None


def test_parameters_as_pairs(make_hook: MakeHook, cancer: Cancer, run: WrittenRun) -> None:
    pairs = [*((name, value) for name, value in BINARY.items() if name != "eval_metric")]
    pairs += [("eval_metric", "logloss"), ("eval_metric", "auc")]
    train(cancer, make_hook(save_all=True, hyperparameters=pairs), rounds=1, parameters=dict(pairs))
    assert list(run.values(0)["hyperparameters/eval_metric"]) == ["logloss", "auc"]
