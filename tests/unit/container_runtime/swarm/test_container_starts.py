"""Tests of starts that a Swarm interrupts, with played engines."""

from types import SimpleNamespace
from typing import Any, cast

import docker
import docker.errors
import pytest

from container_runtime.docker.engine import INSTANCE_LABEL
from container_runtime.docker.sidecar import SIDECAR_LABEL
from container_runtime.runtime import ContainerStartError, EngineUnavailableError
from container_runtime.spec import ContainerSpec
from container_runtime.swarm.containers import container_starts
from container_runtime.swarm.containers.container_starts import ContainerStarts, name_service
from container_runtime.swarm.containers.tasks import NAME_LABEL
from container_runtime.swarm.engine import SwarmEngine

SPEC = ContainerSpec("job", "asked", network="net", hostname="algo-1")


class Played:
    """The parts of a back end that a start uses. Each records its calls."""

    def __init__(self, **methods: Any) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.methods = methods

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **_given: Any) -> Any:
            self.calls.append((name, *map(str, arguments)))
            return self.methods.get(name, lambda *_: None)(*arguments)

        return call


def build_starts(
    images: Played, nodes: Played, containers: Played | None = None, capacity: Played | None = None
) -> ContainerStarts:
    return ContainerStarts(
        cast("docker.APIClient", Played()),
        {INSTANCE_LABEL: "one"},
        cast("Any", images),
        cast("Any", nodes),
        cast("Any", capacity or Played()),
        cast("Any", Played()),
        cast("Any", containers or Played()),
        (1000, 1000),
        is_open=False,
        carry=False,
    )


def test_an_image_that_is_gone_is_looked_up_again_for_the_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    images, nodes = Played(resolve=lambda _name: SimpleNamespace(id="sha256:1")), Played()
    starts, tries = build_starts(images, nodes), []

    def start(_starts: ContainerStarts, spec: ContainerSpec) -> str:
        tries.append(spec)
        if len(tries) == 1:
            raise ContainerStartError("Cannot start container job: No such image: sha256:1")
        return "id"

    monkeypatch.setattr(ContainerStarts, "_start", start)
    assert starts.start(SPEC) == "id"
    assert ("forget", "asked") in images.calls
    assert ("forget", "sha256:1") in nodes.calls


class Manager:
    """The services of a Swarm, and a manager that may not answer."""

    def __init__(self) -> None:
        self.away = False
        self.services: list[str] = []

    def ask(self, *_: object) -> bool:
        if self.away:
            raise EngineUnavailableError("no engine answers")
        return True

    def create(self, _name: str, service: dict[str, Any]) -> bool:
        if service["Name"] in self.services:
            raise docker.errors.APIError("conflict", cast("Any", SimpleNamespace(status_code=409)))
        self.services.append(service["Name"])
        return self.ask()

    def remove(self, name: str) -> None:
        self.ask()
        self.services = [each for each in self.services if each != name]


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, manager: Manager) -> ContainerStarts:
    for name in ("copy_image_files", "prepare_folders", "build_promise", "find_hosts"):
        monkeypatch.setattr(container_starts, name, lambda *_: None)
    monkeypatch.setattr(container_starts, "find_folders", lambda *_: ([], {}))
    monkeypatch.setattr(container_starts, "build_service", lambda _spec, _image, name, *_, **_given: {"Name": name})
    monkeypatch.setattr(ContainerStarts, "_check_program", lambda *_: None)
    agents = SimpleNamespace(label={})
    nodes = SimpleNamespace(spread=lambda _image: [], agents=agents)
    containers = Played(answers=manager.ask, remove=manager.remove)
    capacity = SimpleNamespace(is_kept=lambda _name: True, create=manager.create)
    images = Played(resolve=lambda _name: SimpleNamespace(id="sha256:1"))
    return build_starts(images, cast("Any", nodes), containers, cast("Any", capacity))


def list_found(starts: ContainerStarts, manager: Manager) -> list[str]:
    """Return the names of the services that a back end finds, as if each ran."""
    own = {NAME_LABEL: "job", INSTANCE_LABEL: "", SIDECAR_LABEL: ""}
    services = [{"Spec": {"Name": name, "Labels": own}} for name in manager.services]
    engine = SimpleNamespace(
        _starts=starts,
        # What a start has left is removed before.
        _tasks=SimpleNamespace(list_services=lambda _: [x for x in services if x["Spec"]["Name"] in manager.services]),
        _nodes=SimpleNamespace(agents=SimpleNamespace(label={})),
        is_lost=lambda _name: False,
        runs=lambda _name: True,
    )
    return [each.id for each in SwarmEngine.find(cast("Any", engine), {})]


@pytest.mark.parametrize("goes_away", ["when it has created the service", "when the program is to begin"])
def test_a_container_that_nobody_lets_begin_is_removed_and_not_found(
    starts: ContainerStarts, manager: Manager, monkeypatch: pytest.MonkeyPatch, goes_away: str
) -> None:
    def await_start(*_: object) -> None:
        manager.away = True
        manager.ask()

    monkeypatch.setattr(ContainerStarts, "_await_start", await_start)
    manager.away = goes_away == "when it has created the service"
    with pytest.raises(EngineUnavailableError):
        starts.start(SPEC)
    assert len(manager.services) == 1
    assert list_found(starts, manager) == [], "it would be taken for one that runs"
    with pytest.raises(EngineUnavailableError, match="an earlier start of job left"):
        starts.start(SPEC)
    manager.away = False
    assert list_found(starts, manager) == []
    assert manager.services == []
    monkeypatch.setattr(ContainerStarts, "_await_start", lambda *_: None)
    started = starts.start(SPEC)
    assert manager.services == list_found(starts, manager) == [started]


def test_a_name_that_is_in_use_keeps_its_container(starts: ContainerStarts, manager: Manager) -> None:
    name = name_service("one", "job")
    manager.services.append(name)
    with pytest.raises(ContainerStartError, match="A container named job exists already"):
        starts.start(SPEC)
    assert list_found(starts, manager) == [name]
