"""Tests of SageMaker's XGBoost algorithm, with a substitute for /opt/ml.

It runs as its container runs it.
"""

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from rules_images.training.xgboost.built_in_algorithm.__main__ import main
from rules_images.training.xgboost.built_in_algorithm.channels import read_channels
from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from rules_images.training.xgboost.built_in_algorithm.hyperparameters import parse_hyperparameters
from tests.unit.rules_images.training.xgboost.opt_ml import OptMl, to_csv, to_libsvm


@pytest.fixture
def opt_ml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OptMl:
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(tmp_path))
    monkeypatch.delenv("SAGEMAKER_PROGRAM", raising=False)
    return OptMl(tmp_path)


def test_csv_channels_of_several_files(opt_ml: OptMl, capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    table = np.column_stack([labels, features])
    opt_ml.add_channel("train", "text/csv", **{"a.csv": to_csv(table[:200]), "b.csv": to_csv(table[200:400])})
    opt_ml.add_channel("validation", "text/csv; label_size=1", **{"c.csv": to_csv(table[400:])})
    opt_ml.configure(
        num_round="10", objective="binary:logistic", eval_metric='["logloss", "auc"]', max_depth="3", nthread="1"
    )
    assert main(["train"]) == 0
    matrices = [xgboost.DMatrix(each[:, 1:].astype("f4"), each[:, 0]) for each in (table[:400], table[400:])]
    history: dict[str, dict[str, list[float]]] = {}
    parameters = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "max_depth": 3, "nthread": 1}
    evals = list(zip(matrices, ("train", "validation"), strict=True))
    booster = xgboost.train(parameters, matrices[0], 10, evals=evals, evals_result=history, verbose_eval=False)
    np.testing.assert_allclose(opt_ml.model.predict(matrices[1]), booster.predict(matrices[1]), rtol=1e-5)
    printed = capsys.readouterr().out.splitlines()
    lines = [line for line in printed if line.startswith("[")]
    for number, line in enumerate(lines):
        values = [
            f"{data}-{metric}:{history[data][metric][number]:.5f}"
            for data in ("train", "validation")
            for metric in ("logloss", "auc")
        ]
        assert line == "#011".join([f"[{number}]", *values])
    assert len(lines) == 10


def test_libsvm_is_what_is_read_without_a_content_type(opt_ml: OptMl) -> None:
    features, labels = load_diabetes(return_X_y=True)
    opt_ml.add_channel("train", None, data=to_libsvm(labels, features))
    opt_ml.configure(num_round="3", objective="reg:squarederror", nthread="1")
    assert main(["train"]) == 0
    assert opt_ml.model.num_boosted_rounds() == 3
    assert opt_ml.model.num_features() == 10


def test_libsvm_whose_channels_end_at_other_columns(opt_ml: OptMl) -> None:
    opt_ml.add_channel("train", "text/libsvm", data="1 0:1\n2 1:1\n")
    opt_ml.add_channel("validation", "text/libsvm", data="1 4:1\n")
    matrices = read_channels(opt_ml.root, csv_weights=False)
    assert [matrix.num_col() for matrix in matrices.values()] == [5, 5]


FOLDS = {"num_round": "3", "_kfold": "4", "nthread": "1"}


def read_folds(opt_ml: OptMl) -> tuple[list[xgboost.Booster], np.ndarray[Any, Any]]:
    """The models by their number, and the rows of predictions.csv."""
    models: list[xgboost.Booster] = []
    while (path := opt_ml.root / f"model/xgboost-model-{len(models)}").is_file():
        models.append(xgboost.Booster())
        models[-1].load_model(bytearray(path.read_bytes()))
    return models, np.loadtxt(opt_ml.root / "output/data/predictions.csv", delimiter=",")


def test_cross_validation_of_classes(opt_ml: OptMl, capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    table = np.column_stack([labels, features])
    opt_ml.add_channel("train", "text/csv", data=to_csv(table[:400]))
    opt_ml.add_channel("validation", "text/csv", data=to_csv(table[400:]))
    opt_ml.configure(**FOLDS, _num_cv_round="2", objective="binary:logistic", eval_metric="error,accuracy")
    assert main(["train"]) == 0
    models, predicted = read_folds(opt_ml)
    assert not (opt_ml.root / "model/xgboost-model").exists()
    assert [model.num_boosted_rounds() for model in models] == [3] * 8
    shown = capsys.readouterr().out.splitlines()
    assert "Run 2-round of 4-fold cross validation with 569 rows" in shown
    assert [line[-1] for line in shown if line.startswith("Train cross validation fold")] == list("12341234")
    at = [shown.index(f"The metrics of round {number} cross validation") + 1 for number in (1, 2)]
    at.append(shown.index("The overall metrics of 2-round cross validation") + 1)
    # Models of the folds, each judged by the channels as they are.
    whole = {"train": table[:400], "validation": table[400:]}
    errors = {
        name: [np.mean((model.predict(xgboost.DMatrix(rows[:, 1:])) > 0.5) != rows[:, 0]) for model in models]
        for name, rows in whole.items()
    }
    for line, of in zip(at, (slice(4), slice(4, 8), slice(8)), strict=True):
        beginning, *values = shown[line].split("#011")
        assert beginning == "[3]"
        found = {name: float(value) for name, _, value in (value.partition(":") for value in values)}
        means = {name: np.mean(values[of]) for name, values in errors.items()}
        wanted = {f"{name}-error": mean for name, mean in means.items()}
        wanted |= {f"{name}-accuracy": 1 - mean for name, mean in means.items()}
        assert found == pytest.approx(wanted, abs=2e-5)
    # A row's label, its mean probability where it was held out, and the class that was predicted most often.
    np.testing.assert_array_equal(predicted[:, 0], labels)
    assert 0.9 < np.mean((predicted[:, 1] > 0.5) == labels) < 1
    assert np.mean((predicted[:, 1] > 0.5) == predicted[:, 2]) > 0.95


@pytest.mark.parametrize("objective", ["reg:squarederror", "multi:softmax"])
def test_cross_validation_without_a_validation_channel(
    opt_ml: OptMl, capsys: pytest.CaptureFixture[str], objective: str
) -> None:
    features, labels = load_iris(return_X_y=True)
    opt_ml.add_channel("train", "text/csv", data=to_csv(np.column_stack([labels, features])))
    classes = {"num_class": "3"} if objective == "multi:softmax" else {}
    opt_ml.configure(**FOLDS, objective=objective, **classes, early_stopping_rounds="2", seed="5")
    assert main(["train"]) == 0
    models, predicted = read_folds(opt_ml)
    assert len(models) == 4
    np.testing.assert_array_equal(predicted[:, 0], labels)
    if classes:
        assert np.mean(predicted[:, 2] == labels) > 0.9
        assert (predicted[:, 1] > 1 / 3).all()
        assert (predicted[:, 1] <= 1).all()
    else:
        assert predicted.shape == (150, 2)
        line = capsys.readouterr().out.splitlines()
        # Folds are of one size, so the mean of their errors is that of all rows.
        (shown,) = [text for text in line if text.startswith("[3]#011")]
        rmse = float(shown.rpartition("validation-rmse:")[2])
        assert rmse == pytest.approx(np.sqrt(np.mean((predicted[:, 1] - labels) ** 2)), rel=0.05)
    first = [model.save_raw("json") for model in models]
    assert main(["train"]) == 0
    assert [model.save_raw("json") for model in read_folds(opt_ml)[0]] == first


def test_wrong_cross_validation(opt_ml: OptMl) -> None:
    opt_ml.add_channel("train", "text/libsvm", data="1 0:1\n2 1:1\n3 0:3\n")
    opt_ml.configure(**FOLDS)
    assert main(["train"]) == 1
    assert opt_ml.failure == "_kfold is 4, and the channels have 3 rows: give more rows, or fewer folds."
    opt_ml.add_channel("train", "text/libsvm", data="1 qid:1 0:1\n2 qid:1 1:1\n3 qid:2 0:3\n")
    assert main(["train"]) == 1
    assert opt_ml.failure.startswith("_kfold does not go with rows that have a qid")
    opt_ml.configure(**{**FOLDS, "_kfold": "1", "_num_cv_round": "0"})
    assert main(["train"]) == 1
    assert "_kfold is '1', expected a whole number of at least 2" in opt_ml.failure
    assert "_num_cv_round is '0', expected a whole number of at least 1" in opt_ml.failure


def test_early_stopping_keeps_the_best_rounds(opt_ml: OptMl, capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = load_diabetes(return_X_y=True)
    opt_ml.add_channel("train", "text/libsvm", data=to_libsvm(labels[:200], features[:200]))
    opt_ml.add_channel("validation", "text/x-libsvm", data=to_libsvm(labels[200:], features[200:]))
    opt_ml.configure(num_round="100", early_stopping_rounds="3", eta="0.5", nthread="1")
    assert main(["train"]) == 0
    scores = [line.rpartition(":")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    best = int(np.argmin([float(score) for score in scores]))
    assert len(scores) == best + 4 < 100
    assert opt_ml.model.num_boosted_rounds() == best + 1


def test_metrics_that_xgboost_does_not_have(opt_ml: OptMl, capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = load_breast_cancer(return_X_y=True)
    opt_ml.add_channel("train", "text/csv", data=to_csv(np.column_stack([labels, features])))
    opt_ml.configure(num_round="4", objective="binary:logistic", eval_metric="accuracy,f1_binary,mse", nthread="1")
    assert main(["train"]) == 0
    last = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("[3]"))
    found = {name: float(value) for name, _, value in (part.partition(":") for part in last.split("#011")[1:])}
    predicted = opt_ml.model.predict(xgboost.DMatrix(features))
    classes = predicted > 0.5
    assert found == pytest.approx(
        {
            "train-accuracy": (classes == labels).mean(),
            "train-f1_binary": 2 * (classes & (labels == 1)).sum() / (classes.sum() + labels.sum()),
            "train-mse": ((predicted - labels) ** 2).mean(),
        },
        abs=1e-4,
    )


def test_weights(opt_ml: OptMl) -> None:
    opt_ml.add_channel("train", "text/csv", data="1,2,0.5,3\n0,1,,4\n")
    matrix = read_channels(opt_ml.root, csv_weights=True)["train"]
    assert matrix.get_weight().tolist() == [2, 1]
    assert (matrix.num_col(), matrix.num_nonmissing()) == (2, 3)
    opt_ml.add_channel("train", "text/libsvm", data="1:2.5 0:1 # a comment\n\n0 qid:1 3:1")
    with pytest.raises(JobError, match="Some lines have a qid"):
        read_channels(opt_ml.root, csv_weights=False)
    opt_ml.add_channel("train", "text/libsvm", data="1:2.5 qid:1 0:1\n0 qid:1 3:1")
    matrix = read_channels(opt_ml.root, csv_weights=False)["train"]
    assert matrix.get_weight().tolist() == [2.5, 1]
    assert matrix.num_col() == 4
    assert matrix.get_uint_info("group_ptr").tolist() == [0, 2]


def test_weights_are_those_of_the_training_data(opt_ml: OptMl) -> None:
    opt_ml.add_channel("train", "text/csv", data="1,2,0.5,3\n0,1,,4\n")
    opt_ml.add_channel("validation", "text/csv", data="1,0.5,3\n")
    matrices = read_channels(opt_ml.root, csv_weights=True)
    assert [matrix.get_weight().tolist() for matrix in matrices.values()] == [[2, 1], []]
    assert [matrix.num_col() for matrix in matrices.values()] == [2, 2]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "num_round is missing"),
        ({"num_round": "0"}, "num_round is '0', expected a whole number of at least 1"),
        ({"eta": "2"}, "eta is '2', expected a number from 0 to 1"),
        ({"eta": "nan"}, "eta is 'nan', expected a number"),
        ({"booster": "tree"}, "booster is 'tree', expected one of gbtree, gblinear, dart"),
        ({"csv_weights": "maybe"}, "csv_weights is 'maybe', expected true or false"),
        ({"max_dept": "3"}, "max_dept is not a hyperparameter of this algorithm; there are aft_loss_distribution,"),
        ({"objective": "multi:softmax"}, "objective multi:softmax needs num_class"),
        ({"objective": "multi:softmax", "num_class": "3.0"}, "expected a whole number of at least 2."),
        ({"aa": "1", "bb": "2"}, "aa is not a hyperparameter of this algorithm; bb is not a hyperparameter"),
        ({"num_class": "3"}, "num_class goes with the objectives"),
    ],
)
def test_wrong_hyperparameters(given: dict[str, str], text: str) -> None:
    with pytest.raises(JobError) as caught:
        parse_hyperparameters({"num_round": "1", **given} if given else given)
    assert text in str(caught.value)


def test_every_wrong_hyperparameter_is_reported_at_once(opt_ml: OptMl, capsys: pytest.CaptureFixture[str]) -> None:
    opt_ml.configure(eta="x", max_depth="-1")
    assert main(["train"]) == 1
    assert all(name in opt_ml.failure for name in ("num_round", "eta", "max_depth"))
    assert capsys.readouterr().err == f"{opt_ml.failure}\n"


@pytest.mark.parametrize(
    ("content_type", "files", "text"),
    [
        ("application/json", {"a": "{}"}, "has ContentType 'application/json'; this algorithm reads text/csv"),
        ("text/csv; label_size=2", {"a": "1,2\n"}, "there is one label: label_size=1."),
        ("text/csv", {}, "Channel train holds no data"),
        ("text/csv", {"a": ""}, "Channel train holds no data"),
        ("text/csv", {"a": "label,x\n1,2\n"}, "a is not a CSV of numbers without a header"),
        ("text/csv", {"a": "1\n2\n"}, "beside the label no feature"),
        (
            "application/x-parquet",
            {"a": "no Parquet"},
            "a is not a Parquet file of numbers, the label in the first column",
        ),
        (
            "application/x-recordio-protobuf",
            {"a": "no record"},
            "a: the data is not RecordIO, or is cut: nothing of it can be read",
        ),
        ("text/csv", {"a": ",1\n2,3\n"}, "Some labels are no finite number"),
        ("text/csv", {"a": "1,2\n", "b": "1,2,3\n"}, "b has 3 columns, the files before it 2"),
        ("text/libsvm", {"a": "1 0:2\n1,2,3\n"}, "a, line 2 is not a line of libsvm"),
        ("text/libsvm", {"a": "1 -1:2\n"}, "A column number is below 0"),
        ("text/libsvm", {"a": "# nothing\n"}, "Channel train holds no rows"),
        ("text/libsvm", {"a": "1 qid:-1 0:1\n"}, "A qid is below 0"),
        ("text/csv", {"a": "1,inf\n"}, "XGBoost refuses the data of channel train: Check failed: valid: Input data"),
        ("text/libsvm", {"a": "1:-2 0:1\n"}, "channel train: Check failed: valid: Weights must be positive values."),
        ("text/libsvm", {"a": "1 qid:2 0:1\n0 qid:1 0:1\n"}, "Check failed: non_dec: `qid` must be sorted"),
    ],
)
def test_wrong_channels(opt_ml: OptMl, content_type: str, files: dict[str, str], text: str) -> None:
    opt_ml.configure(num_round="1")
    opt_ml.add_channel("train", content_type, **files)
    assert main(["train"]) == 1
    assert text in opt_ml.failure
    assert "Stack trace" not in opt_ml.failure


def test_what_only_a_gpu_asks_for_changes_nothing() -> None:
    ignored = {"predictor": "auto", "use_dask_gpu_training": "false"}
    assert parse_hyperparameters({"num_round": "1", "seed": "-7", **ignored}).booster == {"seed": -7}


def test_what_a_tuning_job_looks_for_is_evaluated_last() -> None:
    tuned = {"num_round": "1", "_tuning_objective_metric": "validation:rmse"}
    assert parse_hyperparameters(tuned).booster == {"eval_metric": ["rmse"]}
    asked = parse_hyperparameters({**tuned, "eval_metric": "rmse,mae"})
    assert asked.booster == {"eval_metric": ["mae", "rmse"]}
    assert asked.last_metric == "rmse"


def test_parquet(opt_ml: OptMl) -> None:
    rows = pd.DataFrame(np.arange(12, dtype=np.float32).reshape(3, 4), columns=list("labc"))
    opt_ml.add_channel("train", "application/x-parquet", ignored="")
    for number, part in enumerate((rows[:2], rows[2:])):
        part.to_parquet(opt_ml.root / f"input/data/train/{number}.parquet")
    matrix = read_channels(opt_ml.root, csv_weights=False)["train"]
    np.testing.assert_array_equal(matrix.get_label(), rows["l"])
    np.testing.assert_array_equal(matrix.get_data().toarray(), rows[["a", "b", "c"]])


# As the SDK's write_numpy_to_dense_tensor and write_spmatrix_to_sparse_tensor (2.257.7) wrote them: labels 1 and 0.
RECORDS = {
    "float32": "CiPXzjAAAAAKGgoGdmFsdWVzEhASDgoMAACAPwAAAEAAAEBAEhIKBnZhbHVlcxIIEgYKBAAAgD8KI9fOMAAAAAoaCgZ2YWx1ZXMS"
    "EBIOCgwAAIBAAACgQAAAwEASEgoGdmFsdWVzEggSBgoEAAAAAA==",
    "float64": "CiPXzkAAAAAKJgoGdmFsdWVzEhwaGgoYAAAAAAAA8D8AAAAAAAAAQAAAAAAAAAhAEhYKBnZhbHVlcxIMGgoKCAAAAAAAAPA/CiPX"
    "zkAAAAAKJgoGdmFsdWVzEhwaGgoYAAAAAAAAEEAAAAAAAAAUQAAAAAAAABhAEhYKBnZhbHVlcxIMGgoKCAAAAAAAAAAA",
    "int64": "CiPXziQAAAAKEQoGdmFsdWVzEgc6BQoDAQIDEg8KBnZhbHVlcxIFOgMKAQEKI9fOJAAAAAoRCgZ2YWx1ZXMSBzoFCgMEBQYSDwoG"
    "dmFsdWVzEgU6AwoBAA==",
    "sparse": "CiPXzjYAAAAKHAoGdmFsdWVzEhIaEAoIAAAAAAAA+D8SAQEaAQMSFgoGdmFsdWVzEgwaCgoIAAAAAAAA8D8AAAoj1842AAAAChwK"
    "BnZhbHVlcxISGhAKCAAAAAAAAAhAEgECGgEDEhYKBnZhbHVlcxIMGgoKCAAAAAAAAAAAAAA=",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_records_as_the_sdk_writes_them(opt_ml: OptMl, kind: str) -> None:
    opt_ml.add_channel("train", "application/x-recordio-protobuf", ignored="")
    (opt_ml.root / "input/data/train/rows").write_bytes(base64.b64decode(RECORDS[kind]))
    matrix = read_channels(opt_ml.root, csv_weights=False)["train"]
    np.testing.assert_array_equal(matrix.get_label(), [1, 0])
    rows = [[0, 1.5, 0], [0, 0, 3]] if kind == "sparse" else [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(matrix.get_data().toarray(), rows)


def test_damaged_records(opt_ml: OptMl) -> None:
    opt_ml.add_channel("train", "recordio-protobuf", ignored="")
    whole = base64.b64decode(RECORDS["float64"])
    half = len(whole) // 2
    for content, text in (
        (whole[:-6], f"cut: nothing of it can be read at byte {half}"),
        (whole[:20] + b"\xff" * 12 + whole[32:], "rows, record 1 is damaged"),
        (whole[:half] + whole[half:].replace(b"values", b"VALUES"), "rows, record 2 has 0 labels; one is needed"),
        (whole[:4] + (1 << 29 | 4).to_bytes(4, "little") + b"part", "The RecordIO files hold no record"),
    ):
        (opt_ml.root / "input/data/train/rows").write_bytes(content)
        with pytest.raises(JobError, match=text):
            read_channels(opt_ml.root, csv_weights=False)


def test_wrong_jobs(opt_ml: OptMl) -> None:
    opt_ml.configure(num_round="1", early_stopping_rounds="1", nthread="1")
    assert main(["train"]) == 1
    assert "no channel named train" in opt_ml.failure
    opt_ml.add_channel("train", "text/csv", data="5,1,2\n7,2,3\n")
    assert main(["train"]) == 1
    assert opt_ml.failure == "early_stopping_rounds needs a channel named validation."
    opt_ml.add_channel("validation", "text/csv", data="5,1\n")
    assert main(["train"]) == 1
    assert opt_ml.failure == "Channel validation has 1 features, and channel train 2."
    opt_ml.add_channel("validation", "text/csv", data="5,1,2\n")
    opt_ml.configure(num_round="1", objective="binary:logistic", nthread="1")
    assert main(["train"]) == 1
    assert opt_ml.failure.startswith("XGBoost refuses this job: Check failed: is_valid: base_score must be in (0,1)")
    assert "Stack trace" not in opt_ml.failure


RUN = (sys.executable, "-m", "rules_images.training.xgboost.built_in_algorithm")


def start(opt_ml: OptMl, *command: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "SAGEMAKER_BASE_DIR": str(opt_ml.root), **variables}
    pipe = subprocess.PIPE
    return subprocess.Popen([*RUN, *command], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_any_other_command_is_run(opt_ml: OptMl) -> None:
    done = start(opt_ml, "echo", "hello")
    assert done.communicate(timeout=400) == ("hello\n", "")
    done = start(opt_ml)
    assert "needs a command" in done.communicate(timeout=400)[1]
    assert done.returncode == 1


IMPORTING = """
import os, sys
from sagemaker_xgboost_container import checkpointing
from sagemaker_xgboost_container.data_utils import get_dmatrix
train = get_dmatrix(os.environ["SM_CHANNEL_TRAIN"], "csv")
given = {"params": {"nthread": 1}, "dtrain": train, "num_boost_round": 3, "evals": [(train, "train")]}
print("GOT", checkpointing.train(given, os.environ["SM_MODEL_DIR"]).num_boosted_rounds(), train.num_col())
"""


@pytest.mark.nightly  # test_script_packages.py has what is imported, and each image's smoke test such a script
def test_a_script_imports_what_the_container_has(opt_ml: OptMl) -> None:
    (opt_ml.root / "source").mkdir()
    (opt_ml.root / "source/script.py").write_text(IMPORTING)
    opt_ml.add_channel("train", "text/csv", data="5,1,2\n7,2,3\n")
    opt_ml.configure(sagemaker_program='"script.py"', sagemaker_submit_directory=f'"{opt_ml.root / "source"}"')
    hosts = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
    (opt_ml.root / "input/config/resourceconfig.json").write_text(json.dumps(hosts))
    training = start(opt_ml, "train", SM_STUDIO_LOCAL_MODE="true")
    said, errors = training.communicate(timeout=250)
    assert training.returncode == 0, errors
    assert "GOT 3 2" in said
    assert "[2]\ttrain-rmse" in said


def test_a_stopped_job_keeps_its_model_where_it_is_asked_to(opt_ml: OptMl, monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = load_diabetes(return_X_y=True)
    opt_ml.add_channel("train", "text/libsvm", data=to_libsvm(labels, features))
    opt_ml.configure(num_round="1000", save_model_on_termination="true", nthread="1", max_depth="2")

    def say(text: str) -> None:
        if text.startswith("[20]"):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("rules_images.training.xgboost.built_in_algorithm.training._say", say)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert main(["train"]) == 0
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert 20 < opt_ml.model.num_boosted_rounds() < 30


@pytest.mark.parametrize(
    ("given", "name", "value", "note"),
    [
        ({"silent": "0"}, "verbosity", 1, "silent is deprecated: verbosity 1 is used"),
        ({"silent": "1"}, "verbosity", 0, "silent is deprecated: verbosity 0 is used"),
        ({"silent": "0", "verbosity": "3"}, "verbosity", 3, "silent is deprecated"),
        ({"objective": "reg:linear"}, "objective", "reg:squarederror", "objective reg:linear is deprecated"),
        ({"tree_method": "gpu_hist"}, "tree_method", "hist", "tree_method gpu_hist is deprecated"),
        ({"predictor": "gpu_predictor"}, "predictor", None, "predictor is deprecated, and has no effect"),
        ({"eta": "0.2"}, "eta", 0.2, ""),
    ],
)
def test_what_older_versions_took_is_taken_with_a_note(given: dict[str, str], name: str, value: Any, note: str) -> None:
    asked = parse_hyperparameters({"num_round": "1", **given})
    assert asked.booster.get(name) == value
    assert "silent" not in asked.booster
    assert [each.startswith(note) for each in asked.notes] == ([True] if note else [])


def test_silent_is_zero_or_one() -> None:
    with pytest.raises(JobError, match="silent is 'yes', expected a whole number of at least 0 and at most 1"):
        parse_hyperparameters({"num_round": "1", "silent": "yes"})
