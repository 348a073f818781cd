"""Shared parts of hook tests: the written run, log messages, and cleanup."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from smdebug.capture.singleton import del_hook
from smdebug.logger import DuplicateLogFilter, get_logger
from tests.unit.smdebug.written_run import WrittenRun

Made = TypeVar("Made")


@contextmanager
def closing_hooks(build: Callable[..., Made]) -> Iterator[Callable[..., Made]]:
    """Give a function that makes hooks by `build`; at the end they are closed, and none is the process's own."""
    made: list[Any] = []

    def make(*positional: Any, **arguments: Any) -> Made:
        made.append(build(*positional, **arguments))
        return made[-1]

    yield make
    for hook in made:
        hook.close()
    del_hook()


@pytest.fixture
def run(tmp_path: Path) -> WrittenRun:
    return WrittenRun(tmp_path / "run")


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
