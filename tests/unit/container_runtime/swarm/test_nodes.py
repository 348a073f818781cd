"""Tests of the nodes of a Swarm."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import docker.errors
import pytest

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.nodes import Nodes, SwarmNode


def test_an_image_for_no_node_names_the_reason_why_agents_do_not_run(tmp_path: Path) -> None:
    rejected = {"NodeID": "n2", "Status": {"State": "rejected", "Err": "No such image: sha256:1"}}
    tasks: list[Any] = [rejected]
    api = cast("docker.APIClient", SimpleNamespace(nodes=list, tasks=lambda _filters: tasks))
    nodes = Nodes(api, tmp_path)
    with pytest.raises(ContainerRuntimeError, match=r"can run the image sha256:2: No such image: sha256:1\. smdebug-"):
        nodes.spread("sha256:2")
    tasks.clear()
    with pytest.raises(ContainerRuntimeError, match="none accepts tasks"):
        nodes.spread("sha256:2")


class Node:
    """A node's engine, and whether it has the image."""

    def __init__(self) -> None:
        self.images: set[str] = set()
        self.error: str | None = None

    def inspect_image(self, image: str) -> None:
        if image not in self.images:
            raise docker.errors.ImageNotFound(f"No such image: {image}")

    def load_image(self, image: str) -> list[dict[str, str]]:
        if self.error is not None:
            return [{"stream": "Loading layer"}, {"error": self.error}]
        self.images.add(image)
        return [{"stream": "Loaded image ID"}]


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: Node) -> Nodes:
    manager = SimpleNamespace(get_image=lambda image: image, tasks=lambda _filters: [])
    made = Nodes(cast("docker.APIClient", manager), tmp_path)
    monkeypatch.setattr(made, "list_ready", lambda: [SwarmNode("n1", "first", 2, 1 << 30, ("", 0))])
    monkeypatch.setattr(made, "connect", lambda _node: node)
    return made


def test_an_image_that_a_node_has_removed_is_copied_again(nodes: Nodes, node: Node) -> None:
    for image in ("sha256:1", "sha256:2"):
        nodes.spread(image)
    node.images.clear()
    nodes.forget("sha256:1")
    for image in ("sha256:1", "sha256:2"):
        nodes.spread(image)
    assert node.images == {"sha256:1"}, "the other was not asked for again"


def test_a_node_that_cannot_take_an_image_says_why(nodes: Nodes, node: Node) -> None:
    node.error = "write /layer.tar: no space left on device"
    with pytest.raises(
        ContainerRuntimeError, match=r"image sha256:1: Cannot bring .* to the node first: write .* no space left on"
    ):
        nodes.spread("sha256:1")
