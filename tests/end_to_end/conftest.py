"""Fixture of the demo's digits job, staged once in each emulator."""

import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from emulator.stop_handler.deployment import deploy_stop_handler
from sdk_compat.demo.training_job import stage_inputs
from tests.end_to_end.finished_jobs import WaitForJob, wait_until_ended
from tests.running_emulator import BACK_ENDS, RunningEmulator


@pytest.fixture(scope="session")
def staged(emulator: RunningEmulator) -> RunningEmulator:
    """The emulator with the digits in S3 and the stop handler deployed."""
    stage_inputs(emulator.client("s3"))
    deploy_stop_handler(emulator.client)
    return emulator


@pytest.fixture
def job_name(request: pytest.FixtureRequest) -> str:
    words = "-".join(part for part in request.node.originalname.split("_")[1:4])
    return f"{words}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def wait_for_job(emulator: RunningEmulator) -> WaitForJob:
    """Wait until a job and its rules have ended; return its description."""
    return partial(wait_until_ended, emulator)


@pytest.fixture(scope="module", params=BACK_ENDS)
def alone(request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]) -> Iterator[RunningEmulator]:
    """A module's own emulator, without the stop handler of `staged`: only a rule's own action stops a job here."""
    emulator = start_emulator(request.param, warm=False)
    yield emulator
    assert emulator.stop() == 0
