from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from sdk_compat import boto3_client
from sdk_compat.boto3_client import EmulatorSession

URL = "http://127.0.0.1:1"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files of models that are read, without their endings."""
    paths: list[str] = []
    load = JSONFileLoader.load_file

    def load_file(self: Any, path: str) -> Any:
        found = load(self, path)
        if found is not None:
            paths.append(path)
        return found

    monkeypatch.setattr(JSONFileLoader, "load_file", load_file)
    monkeypatch.setattr(boto3_client, "_loaders", {})
    monkeypatch.delenv("AWS_DATA_PATH", raising=False)
    return paths


def test_later_sessions_read_no_model_again(read: list[str]) -> None:
    first = EmulatorSession(URL).client("sqs")
    assert any(path.endswith("sqs/2012-11-05/service-2") for path in read)
    read.clear()
    second = EmulatorSession(URL, "eu-west-1").client("sqs")
    assert read == []
    assert (first.meta.region_name, second.meta.region_name) == ("us-east-1", "eu-west-1")


def test_other_folders_of_models_are_read(read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EmulatorSession(URL).client("sqs")
    read.clear()
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    session = EmulatorSession(URL)
    session.client("sqs")
    assert any(path.endswith("sqs/2012-11-05/service-2") for path in read)
    assert str(tmp_path) in session._session.get_component("data_loader").search_paths


def test_folders_of_models_are_not_added_again_and_again(read: list[str]) -> None:
    sessions = [EmulatorSession(URL) for _ in range(3)]
    (paths,) = {tuple(each._session.get_component("data_loader").search_paths) for each in sessions}
    assert len(paths) == len(set(paths))
    assert {resource for each in sessions for resource in each.get_available_resources()} >= {"s3", "sqs"}
