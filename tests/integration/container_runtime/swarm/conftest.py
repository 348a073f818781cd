from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.container_runtime.swarm.file_transfer.carrying import Setup


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    made = Setup(tmp_path)
    yield made
    made.close()
