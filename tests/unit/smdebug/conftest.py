"""What smdebug's logger says, the run of a hook under test, and scripts in processes of their own."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from smdebug.logger import DuplicateLogFilter, get_logger
from tests.unit.smdebug.object_storage import moto_endpoint, storage
from tests.unit.smdebug.written_run import WrittenRun

__all__ = ["moto_endpoint", "storage"]

ROOT = Path(__file__).parents[3]


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
def run(tmp_path):
    return WrittenRun(tmp_path / "run")


@pytest.fixture
def run_script(tmp_path):
    """Runs text as a script of its own process, smdebug importable."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(text)
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start
