"""Tests of starts that a Swarm interrupts, with played engines."""

from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from container_runtime.runtime import ContainerStartError
from container_runtime.spec import ContainerSpec
from container_runtime.swarm.containers.container_starts import ContainerStarts

SPEC = ContainerSpec("job", "asked")


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


def build_starts(images: Played, nodes: Played, containers: Played | None = None) -> ContainerStarts:
    return ContainerStarts(
        cast("docker.APIClient", Played()),
        {},
        cast("Any", images),
        cast("Any", nodes),
        cast("Any", Played()),
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
