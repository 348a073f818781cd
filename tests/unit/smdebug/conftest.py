"""What smdebug's logger says, for tests that look at it."""

from __future__ import annotations

import logging

import pytest

from smdebug.core.logger import DuplicateLogFilter, get_logger


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Records of the logger, however often the same was said by tests before."""
    logger = get_logger()
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "filters", [DuplicateLogFilter(1000)])
    monkeypatch.setattr(logger, "disabled", False)
    caplog.set_level(logging.INFO, logger="smdebug")
    return caplog
