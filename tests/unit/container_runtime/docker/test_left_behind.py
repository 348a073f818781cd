"""Tests of the removal of containers after an outage of the engine."""

import logging
from collections.abc import Iterator

import pytest

from container_runtime.docker.left_behind import LeftBehind
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError
from tests.waiting import wait_until


class Engine:
    def __init__(self) -> None:
        self.away = True
        self.tried = 0
        self.removed: list[str] = []
        self.left = LeftBehind(self.remove)

    def remove(self, container: str) -> None:
        self.tried += 1
        if self.away:
            raise EngineUnavailableError("no engine answers")
        if container == "stuck":
            raise ContainerRuntimeError("it is stuck")
        self.removed.append(container)
        if container == "container":
            self.left.add("its sidecar")


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine()
    yield made
    made.away = False
    made.left.close()


def test_it_is_removed_when_the_engine_is_back_with_what_that_leaves(engine: Engine) -> None:
    for each in ("stuck", "container"):
        engine.left.add(each)
    wait_until(lambda: engine.tried > 1)
    assert engine.removed == []
    engine.away = False
    wait_until(lambda: engine.removed == ["container", "its sidecar"])
    engine.left.add("later")
    wait_until(lambda: engine.removed == ["container", "its sidecar", "later"])


def test_whoever_starts_one_of_its_name_has_it_removed_first(engine: Engine) -> None:
    engine.left.add("name")
    with pytest.raises(EngineUnavailableError):
        engine.left.clear()
    engine.away = False
    engine.left.clear()
    assert engine.removed == ["name"]


def test_what_stays_is_reported_at_the_end(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    engine.left.add("name")
    with caplog.at_level(logging.WARNING):
        engine.left.close()
    assert "Stays behind until the next start: name" in caplog.text
