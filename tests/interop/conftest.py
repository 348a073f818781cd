"""Fixtures of the real smdebug 1.0.34 in a virtual environment of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.shared.environments import build_upstream
from tests.interop.upstream import Upstream


@pytest.fixture(scope="session")
def upstream_smdebug_python() -> Path:
    """Path of an interpreter that has what the real smdebug needs to read runs."""
    return build_upstream()


@pytest.fixture(scope="session")
def upstream(upstream_smdebug_python: Path) -> Iterator[Upstream]:
    """The real smdebug, which reads the runs of all tests of a worker in one process."""
    running = Upstream(upstream_smdebug_python)
    yield running
    running.close()
