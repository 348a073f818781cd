"""Warnings that smdebug reports to the service beside its log."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smdebug import job_warnings
from smdebug.barrier import LossReport
from smdebug.config.json_config import collect_hook_config_params
from smdebug.environment import WARNINGS_PATH_ENV_STR
from smdebug.job_warnings import TENSORS_DROPPED, warn_user
from smdebug.logger import get_logger


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(job_warnings, "_written", set())
    monkeypatch.setenv(WARNINGS_PATH_ENV_STR, str(tmp_path / "warnings.jsonl"))
    return tmp_path / "warnings.jsonl"


@pytest.fixture
def log() -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign, assignment]
    get_logger().addHandler(handler)
    yield records
    get_logger().removeHandler(handler)


def read(path: Path) -> list[tuple[str, str]]:
    return [(each["Code"], each["Text"]) for each in map(json.loads, path.read_text().splitlines())]


def test_a_warning_is_a_line_of_the_log_and_of_the_file(path: Path, log: list[logging.LogRecord]) -> None:
    for _ in range(2):
        warn_user(TENSORS_DROPPED, "%s at 100%%", "a\nb")
    assert read(path) == [("TensorsDropped", "a\nb at 100%")]
    assert log[0].getMessage() == "a\nb at 100%"
    # The line names whoever warns.
    assert log[0].filename == "test_job_warnings.py"


def test_without_a_file_there_is_the_log_only(
    path: Path, log: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WARNINGS_PATH_ENV_STR)
    warn_user(TENSORS_DROPPED, "lost")
    assert [record.getMessage() for record in log] == ["lost"]
    assert not path.exists()


def test_a_file_that_cannot_be_written_harms_no_training(
    log: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(WARNINGS_PATH_ENV_STR, str(tmp_path / "none" / "x"))
    warn_user(TENSORS_DROPPED, "lost")
    assert log[0].getMessage() == "lost"
    assert log[1].getMessage().startswith("The warning was not reported to the service:")


def test_the_file_has_bounds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200):
        warn_user(TENSORS_DROPPED, "%d", number)
    assert len(read(path)) == 100
    monkeypatch.setattr(job_warnings, "_written", set())
    for number in range(100):
        warn_user(TENSORS_DROPPED, "%s", f"{number} {'x' * 5000}")
    assert path.stat().st_size <= 1 << 16


def test_what_hooks_ignore_and_lose_is_reported(path: Path) -> None:
    collect_hook_config_params({"HookParameters": {"save_intervall": "1", "save_shape": "true"}})
    LossReport().say("tensor a", ValueError("broken"))
    assert read(path) == [
        (
            "HookParameterIgnored",
            "HookParameters: 'save_intervall' is unknown and is ignored. Did you mean save_interval?",
        ),
        (
            "HookParameterIgnored",
            (
                'HookParameters: save_shape is read only together with reductions, and is ignored. Add "reductions": ""'
                " beside it."
            ),
        ),
        (
            "TensorsDropped",
            "Not saved: tensor a (ValueError: broken). Training goes on; the same failure is not reported again.",
        ),
    ]


@pytest.mark.parametrize(
    ("parameters", "ignored"),
    [
        ({}, []),
        ({"save_raw_tensor": True}, ["save_raw_tensor"]),
        ({"save_shape": False}, ["save_shape"]),
        ({"save_raw_tensor": True, "save_shape": True}, ["save_raw_tensor", "save_shape"]),
        ({"save_raw_tensor": None}, []),
        ({"save_raw_tensor": True, "save_shape": True, "reductions": ""}, []),
    ],
)
def test_flags_that_need_reductions_are_named_where_there_are_none(
    parameters: dict[str, Any], ignored: list[str], path: Path
) -> None:
    collect_hook_config_params({"HookParameters": parameters})
    texts = [text for _, text in read(path)] if path.exists() else []
    assert [text.partition(": ")[2].partition(" is read only together")[0] for text in texts] == ignored
