"""Fixture of a job harness, whose threads and processes end with the test."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.emulator.jobs.job_harness import ACCOUNT, REGION, JobHarness, open_job_harness
from tests.waiting import wait_until


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[JobHarness]:
    from moto.cloudwatch.models import cloudwatch_backends
    from moto.logs.models import logs_backends

    logs_backends[ACCOUNT][REGION].groups.clear()
    cloudwatch_backends[ACCOUNT][REGION].reset()
    before = set(threading.enumerate())
    with open_job_harness(tmp_path) as opened:
        yield opened
    # The reader of a container's log ends by itself, when it has seen the container's end.
    wait_until(lambda: set(threading.enumerate()) <= before, "every thread of the harness has ended")
