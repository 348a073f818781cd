"""What smdebug's logger says, and the run of a hook under test."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from smdebug.logger import DuplicateLogFilter, get_logger
from tests.unit.smdebug.object_storage import moto_endpoint, storage
from tests.unit.smdebug.scripts import config, run_script
from tests.unit.smdebug.written_run import WrittenRun

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["config", "moto_endpoint", "run_script", "storage"]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Records of the logger, however often the same was said by tests before."""
    logger = get_logger()
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "filters", [DuplicateLogFilter(1000)])
    monkeypatch.setattr(logger, "disabled", False)
    caplog.set_level(logging.INFO, logger="smdebug")
    return caplog


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "CHECKPOINT_CONFIG_FILE_PATH", "USE_SMDEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    return WrittenRun(tmp_path / "run")
