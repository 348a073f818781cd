"""Fixtures of the real smdebug 1.0.34 in a virtual environment of its own."""

from pathlib import Path

import pytest

from benchmarks.shared.environments import build_upstream
from tests.interop.upstream import upstream

__all__ = ["upstream", "upstream_smdebug_python"]


@pytest.fixture(scope="session")
def upstream_smdebug_python() -> Path:
    """Path of an interpreter that has what the real smdebug needs to read runs."""
    return build_upstream()
