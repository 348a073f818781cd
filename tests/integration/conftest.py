"""Shared fixtures of the integration tests: moto, whose state is process-wide."""

import pytest
from moto.moto_api._internal.models import moto_api_backend


@pytest.fixture(scope="module")
def fresh_moto() -> None:
    """Take from moto what another file's tests have left in it."""
    moto_api_backend.reset()
