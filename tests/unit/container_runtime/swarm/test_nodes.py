"""Tests of the nodes of a Swarm."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.nodes import Nodes


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
