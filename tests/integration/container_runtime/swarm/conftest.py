from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.container_runtime.swarm.file_transfer.carrying import Setup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    made = Setup(tmp_path)
    yield made
    made.close()
