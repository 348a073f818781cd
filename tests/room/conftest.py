"""What the rooms share: moto, whose state is the process's."""

from __future__ import annotations

import pytest
from moto.moto_api._internal.models import moto_api_backend


@pytest.fixture(scope="module")
def fresh_moto() -> None:
    """Take from moto what another file's tests have left in it."""
    moto_api_backend.reset()
