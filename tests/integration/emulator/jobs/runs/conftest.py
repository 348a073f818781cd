"""Fixture of the interpreter whose forks are killed."""

from collections.abc import Iterator

import pytest

from tests.integration.emulator.jobs.runs.killed_harness import forking_interpreter


@pytest.fixture(scope="session", autouse=True)
def forks() -> Iterator[None]:
    yield
    forking_interpreter.close()
