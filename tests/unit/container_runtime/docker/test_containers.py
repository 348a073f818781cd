"""Tests of the exit status of a container whose engine is shut down."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import docker
import pytest

from container_runtime.docker.containers import EngineContainers
from container_runtime.runtime import EngineUnavailableError, Exit

ENDED = "2025-01-01T00:00:00.5Z"


class Answer:
    def raise_for_status(self) -> None:
        pass


class SmallEngine:
    """An engine with one container, which has ended."""

    base_url = "http+docker://localhost"
    api_version = "1.41"

    def __init__(self, code: int, killed: list[str]) -> None:
        self.code = code
        self.killed = killed
        self.answers = True

    def post(self, _url: str, *, timeout: object) -> Answer:
        return Answer()

    def inspect_container(self, _container_id: str) -> dict[str, Any]:
        return {"State": {"ExitCode": self.code, "OOMKilled": False, "FinishedAt": ENDED}}

    def events(self, *, until: str, filters: Mapping[str, str], decode: bool) -> Iterator[dict[str, Any]]:
        assert (until, filters["event"], decode) == (ENDED, "kill", True)
        return iter([{"Action": "kill"}] if filters["container"] in self.killed else [])

    def reconnect(self) -> None:
        if not self.answers:
            raise EngineUnavailableError("gone")

    def restart(self) -> None:
        self.killed.clear()
        self.answers = True


def open_containers(engine: SmallEngine) -> EngineContainers:
    return EngineContainers(cast("docker.APIClient", engine), engine.reconnect, set())


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_container_that_ends_by_itself_has_its_own_code_whatever_becomes_of_the_engine(code: int) -> None:
    engine = SmallEngine(code, killed=["other"])
    engine.answers = False
    assert open_containers(engine).wait("it") == Exit(code)


@pytest.mark.parametrize("code", [0, 137])
def test_a_container_that_somebody_kills_has_its_own_code(code: int) -> None:
    assert open_containers(SmallEngine(code, killed=["it"])).wait("it") == Exit(code)


@pytest.mark.parametrize(("code", "expected"), [(143, 143), (1, 1), (0, 143)])
def test_a_container_that_ends_with_its_engine_has_not_done_its_work(code: int, expected: int) -> None:
    engine = SmallEngine(code, killed=["it", "other"])
    containers = open_containers(engine)
    engine.answers = False
    for _ in range(2):
        with pytest.raises(EngineUnavailableError):
            containers.wait("it")
    engine.restart()
    assert containers.wait("it") == Exit(expected)
    assert containers.wait("other") == Exit(code)
