"""A job room for a test, whose threads and processes end with it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tests.room.emulator.jobs.job_room import ACCOUNT, REGION, Room, open_room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    from moto.cloudwatch.models import cloudwatch_backends
    from moto.logs.models import logs_backends

    logs_backends[ACCOUNT][REGION].groups.clear()
    cloudwatch_backends[ACCOUNT][REGION].reset()
    before = set(threading.enumerate())
    with open_room(tmp_path) as opened:
        yield opened
    assert set(threading.enumerate()) <= before, "every thread of the room has ended"
