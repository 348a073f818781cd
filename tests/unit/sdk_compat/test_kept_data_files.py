from __future__ import annotations

import gzip
import inspect
import json
import types
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader, Loader

from sdk_compat.startup.kept_data_files import keep_data_files


class CountingLoader(JSONFileLoader):
    """A reader of data files that counts what it reads, and whose class a test may change."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def _load_file(self, full_path: str, open_method: Any) -> Any:
        found = super()._load_file(full_path, open_method)  # type: ignore[misc] # botocore's types leave it out
        if found is not None:
            self.read.append(Path(full_path).name)
        return found


@pytest.fixture
def reader() -> CountingLoader:
    """A reader that keeps what it reads. The test's own class: ``JSONFileLoader`` stays as it is."""
    # Another test of this process may have had JSONFileLoader keep files.
    kind = type("KeepingLoader", (CountingLoader,), {"load_file": inspect.unwrap(JSONFileLoader.load_file)})
    keep_data_files(types.SimpleNamespace(JSONFileLoader=kind))
    made: CountingLoader = kind()
    return made


def test_a_file_is_read_once(reader: CountingLoader, tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text('{"metadata": {}}')
    name = str(tmp_path / "service")
    found = reader.load_file(name)
    assert found == {"metadata": {}}
    assert reader.load_file(name) is found
    assert reader.read == ["service.json"]


def test_loaders_share_what_one_of_them_has_read(reader: CountingLoader) -> None:
    models = [Loader(file_loader=reader).load_service_model("sns", "service-2") for _ in range(2)]
    assert reader.read.count("service-2.json.gz") + reader.read.count("service-2.json") == 1
    assert models[0] == models[1]


def test_other_files_of_these_services_are_kept(reader: CountingLoader, tmp_path: Path) -> None:
    # A folder of that name, in which botocore may be installed, says nothing.
    for folder in (tmp_path / "s3" / "2006-03-01", tmp_path / "s3" / "sns" / "2010-03-31"):
        folder.mkdir(parents=True)
        (folder / "endpoint-rule-set-1.json").write_text("{}")
        (folder / "service-2.json").write_text("{}")
    for name in ("s3/2006-03-01/endpoint-rule-set-1", "s3/sns/2010-03-31/service-2"):
        path = str(tmp_path / name)
        assert reader.load_file(path) is reader.load_file(path)


@pytest.mark.parametrize("service", ["s3", "sqs"])
def test_models_that_their_users_change_are_not_shared(reader: CountingLoader, service: str) -> None:
    first, second = (Loader(file_loader=reader).load_service_model(service, "service-2") for _ in range(2))
    for operation in first["operations"].values():
        operation["http"]["requestUri"] = ""
    assert all(operation["http"]["requestUri"] for operation in second["operations"].values())


def test_a_file_that_has_changed_is_read_again(reader: CountingLoader, tmp_path: Path) -> None:
    file, name = tmp_path / "service.json", str(tmp_path / "service")
    file.write_text('{"version": 1}')
    assert reader.load_file(name) == {"version": 1}
    file.write_text('{"version": 22}')
    assert reader.load_file(name) == {"version": 22}
    (tmp_path / "new").write_text('{"version": 33}')
    (tmp_path / "new").replace(file)
    assert reader.load_file(name) == {"version": 33}


def test_a_file_that_precedes_another_one_is_found(reader: CountingLoader, tmp_path: Path) -> None:
    name = str(tmp_path / "service")
    (tmp_path / "service.json.gz").write_bytes(gzip.compress(b'{"packed": true}'))
    assert reader.load_file(name) == {"packed": True}
    (tmp_path / "service.json").write_text('{"packed": false}')
    assert reader.load_file(name) == {"packed": False}


def test_a_file_that_is_missing_or_broken_is_looked_for_again(reader: CountingLoader, tmp_path: Path) -> None:
    file, name = tmp_path / "service.json", str(tmp_path / "service")
    assert reader.load_file(name) is None
    file.write_text("{")
    with pytest.raises(json.JSONDecodeError):
        reader.load_file(name)
    file.write_text("{}")
    assert reader.load_file(name) == {}
    file.unlink()
    assert reader.load_file(name) is None


def test_a_module_without_the_class_is_left_alone() -> None:
    module = types.SimpleNamespace(other=1)
    keep_data_files(module)
    assert vars(module) == {"other": 1}
