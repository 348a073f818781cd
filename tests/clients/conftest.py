"""What tests of clients share: an emulator of local processes, because no client sees what runs its jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sdk_compat.environment import prepare_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.running_emulator import RunningEmulator


@pytest.fixture(scope="session")
def served(start_emulator: Callable[..., RunningEmulator]) -> RunningEmulator:
    return start_emulator("process")


@pytest.fixture(scope="session")
def client_environment(served: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that a user's programs reach the emulator by."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return environment | prepare_environment(served.endpoint_url, environment, folder=tmp_path_factory.mktemp("client"))
