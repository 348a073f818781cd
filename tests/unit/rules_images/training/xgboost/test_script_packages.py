"""Tests of the packages that scripts import in SageMaker's XGBoost container."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from rules_images.training.xgboost.script_packages.sagemaker_xgboost_container import checkpointing, encoder
from rules_images.training.xgboost.script_packages.sagemaker_xgboost_container.data_utils import get_dmatrix


@pytest.fixture
def arguments() -> dict[str, Any]:
    rows = np.random.default_rng(0).random((40, 3))
    train = xgboost.DMatrix(rows, rows[:, 0])
    return {"params": {"nthread": 1}, "dtrain": train, "num_boost_round": 8, "evals": [(train, "train")]}


def test_matrices_of_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,2,0.5,3\n0,1,1,4\n")
    for path in (tmp_path, tmp_path / "rows.csv", str(tmp_path)):
        matrix = get_dmatrix(path, "text/csv; label_size=1", csv_weights=1)
        assert matrix is not None
        assert (matrix.num_col(), matrix.get_weight().tolist()) == (2, [2, 1])
    assert get_dmatrix(tmp_path / "none", "csv") is None
    with pytest.raises(JobError, match=r"rows\.csv has ContentType 'text/plain'"):
        get_dmatrix(tmp_path / "rows.csv", "text/plain")
    with pytest.raises(JobError, match="is a pipe, and this container reads files"):
        get_dmatrix(tmp_path, "csv", is_pipe=True)


def test_an_interrupted_training_continues(
    tmp_path: Path, arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = xgboost.train(**arguments, verbose_eval=False)
    first = checkpointing.train({**arguments, "num_boost_round": 7}, tmp_path)
    assert first.num_boosted_rounds() == 7
    assert {path.name for path in tmp_path.iterdir()} == {f"xgboost-checkpoint.{number}" for number in range(2, 7)}
    # One that was being written when the process ended, and what is none.
    (tmp_path / "xgboost-checkpoint.7").write_bytes((tmp_path / "xgboost-checkpoint.6").read_bytes()[:50])
    (tmp_path / "xgboost-checkpoint.7.sagemaker-ignore").write_bytes(b"")
    assert checkpointing.load_checkpoint(tmp_path) == (str(tmp_path / "xgboost-checkpoint.6"), 7)
    capsys.readouterr()
    second = checkpointing.train(arguments, tmp_path)
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["[7]"]
    assert second.num_boosted_rounds() == 8
    np.testing.assert_allclose(second.predict(arguments["dtrain"]), whole.predict(arguments["dtrain"]), rtol=1e-5)


def test_a_folder_without_checkpoints(tmp_path: Path) -> None:
    assert checkpointing.load_checkpoint(tmp_path / "none") == (None, 0)
    assert checkpointing.load_checkpoint("") == (None, 0)


def test_an_empty_channel_is_not_a_matrix(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("")
    assert get_dmatrix(tmp_path, "csv") is None


def test_requests_to_a_model() -> None:
    rows = xgboost.DMatrix(np.array([[1, np.nan, 3], [4, 5, 6]], np.float32))
    for content, content_type in (
        ("1,,3\n4,5,6", "text/csv; charset=utf8"),
        (b"1 ; ; 3\n4;5;6\n", "text/csv"),
        (b"0 0:1 2:3\n0 0:4 1:5 2:6\n", "text/libsvm"),
    ):
        found = encoder.decode(content, content_type).get_data()
        np.testing.assert_array_equal(found.toarray(), rows.get_data().toarray())
        assert found.nnz == 5
    with pytest.raises(ValueError, match="application/json is not a content type of requests; there are text/csv"):
        encoder.decode("{}", "application/json")
    # As the SDK's serializer wrote it, whose labels may be missing: two rows of three numbers.
    request = base64.b64decode(
        "CiPXzjAAAAAKGgoGdmFsdWVzEhASDgoMAACAPwAAAEAAAEBAEhIKBnZhbHVlcxIIEgYKBAAAgD8KI9fOMAAAAAoaCgZ2YWx1ZXMS"
        "EBIOCgwAAIBAAACgQAAAwEASEgoGdmFsdWVzEggSBgoEAAAAAA=="
    )
    np.testing.assert_array_equal(
        encoder.decode(request, "application/x-recordio-protobuf").get_data().toarray(), [[1, 2, 3], [4, 5, 6]]
    )
    assert encoder.json_to_jsonlines({"predictions": [{"score": 1}, 2]}) == b'{"score": 1}\n2\n'
    with pytest.raises(ValueError, match="has 2 members"):
        encoder.json_to_jsonlines('{"a": [], "b": []}')
