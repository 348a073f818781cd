"""Fixtures of an emulator and a plain moto_server, shared by this folder."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.contract.like_moto_server.servers import EMULATOR, MOTO_SERVER, Server, run_moto_server
from tests.running_emulator import RunningEmulator

_numbers = itertools.count()


# By day the emulator is held to AWS's documentation; what moto_server answers changes with its version only.
@pytest.fixture(scope="session", params=[EMULATOR, pytest.param(MOTO_SERVER, marks=pytest.mark.nightly)])
def server(request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]) -> Iterator[Server]:
    if request.param == MOTO_SERVER:
        with run_moto_server() as endpoint_url:
            yield Server(MOTO_SERVER, endpoint_url)
        return
    emulator = start_emulator("process")
    yield Server(EMULATOR, emulator.endpoint_url)
    assert emulator.stop() == 0, "the emulator did not stop cleanly"


@pytest.fixture
def name() -> str:
    """A name that nothing else of the session has."""
    return f"like-moto-server-{next(_numbers)}"


@pytest.fixture
def bucket(server: Server, name: str) -> str:
    server.client("s3").create_bucket(Bucket=name)
    return name
