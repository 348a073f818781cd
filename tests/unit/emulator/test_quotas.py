import json
from pathlib import Path
from typing import Any

import pytest

from emulator.quotas import parse_quota_file, read_quotas

NAME = "ml.m5.large for training job usage"


def write(folder: Path, content: Any) -> Path:
    path = folder / "quotas.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_names_and_numbers(tmp_path: Path) -> None:
    quotas = {NAME: 2, "ml.g5.xlarge for spot training job usage": 0, "ml.c5n.18xlarge for processing job usage": 4}
    path = write(tmp_path, quotas)
    assert parse_quota_file(str(path)) == path
    assert read_quotas(path) == quotas


def test_the_answer_of_service_quotas(tmp_path: Path) -> None:
    entries = [
        {"QuotaName": NAME, "Value": 3.0, "Adjustable": True},
        {"QuotaName": "ml.m5.large for endpoint usage", "Value": 1.0},
        {"QuotaName": "Number of domains", "Value": 1.0},
        {"Value": 1.0},
        None,
    ]
    assert read_quotas(write(tmp_path, {"Quotas": entries})) == {NAME: 3}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([], "holds no JSON object"),
        ({"ml.m5.large": 1}, "'ml.m5.large' is not a quota: write 'ml.m5.large for training job usage', or spot"),
        ({NAME: "2"}, "is '2': give a whole number"),
        ({NAME: -1}, "is -1: give a whole number"),
        ({NAME: 1.5}, "is 1.5: give a whole number"),
        ({NAME: True}, "is True: give a whole number"),
        ({NAME: None}, "is None: give a whole number"),
        ({"Quotas": [{"QuotaName": NAME}]}, "is None: give a whole number"),
    ],
)
def test_a_file_that_says_something_else(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_quota_file(str(write(tmp_path, content)))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        parse_quota_file(str(tmp_path / "none.json"))
