"""Fixtures of the client tests: an emulator for each back end, and variables.

The variables point a user's programs at the emulator.
"""

import os
from collections.abc import Callable

import pytest

from sdk_compat.environment import prepare_environment
from tests.running_emulator import BACK_ENDS, RunningEmulator


@pytest.fixture(scope="session", params=BACK_ENDS)
def emulator(request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]) -> RunningEmulator:
    """In place of the one that all suites share: the stop handler of whole jobs' tests would stop a client's jobs."""
    return start_emulator(request.param)


@pytest.fixture(scope="session", params=BACK_ENDS)
def served(request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]) -> RunningEmulator:
    """One that no other suite uses: a function that somebody deploys there would stop the jobs of these tests."""
    return start_emulator(request.param)


@pytest.fixture(scope="session")
def client_environment(served: RunningEmulator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables that a user's programs reach the emulator by."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return environment | prepare_environment(served.endpoint_url, environment, folder=tmp_path_factory.mktemp("client"))
