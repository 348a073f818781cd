"""Tests of container starts on a node: proxies and host names come first."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from container_runtime.docker.images.local_images import LocalImage
from container_runtime.runtime import ResolvedImage
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.swarm.capacity import Promise, build_promise, read_promise
from container_runtime.swarm.containers.service import build_service
from container_runtime.swarm.nodes import SwarmNode
from tests.waiting import wait_until

IMAGE = LocalImage(ResolvedImage("own", "own"), {"Id": "sha256:1", "Config": {"Entrypoint": ["echo"]}})
NODES = [SwarmNode("1", "small", 2, 4 << 30, ("", 0)), SwarmNode("2", "large", 8, 16 << 30, ("", 0))]


def build(spec: ContainerSpec, hosts: Sequence[str] = (), ports: Sequence[int] = ()) -> dict[str, Any]:
    promise, variables = build_promise(spec, NODES), {"A": "b"}
    return build_service(
        spec, IMAGE, "service", {}, (1000, 1000), spec.mounts, variables, NODES, promise, "net", hosts, ports
    )


def find_command(service: dict[str, Any]) -> list[str]:
    container = service["TaskTemplate"]["ContainerSpec"]
    return [*container["Command"], *container["Args"]]


@pytest.mark.slow
def test_program_begins_when_its_proxy_is_open() -> None:
    spec = ContainerSpec("one", "own", command=("the  words", "$(not run)"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        command = find_command(build(spec, ports=[1, listening.getsockname()[1]]))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            # It has looked, and sleeps.
            wait_until(psutil.Process(process.pid).children)
            assert process.poll() is None
            listening.listen()
            assert process.communicate()[0] == "the  words $(not run)\n"


def test_program_begins_when_other_hosts_have_names() -> None:
    spec = ContainerSpec("one", "own", command=("begun",), hostname="algo-1", network="net")
    command = find_command(build(spec, hosts=["algo-1", "localhost"]))
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "begun\n"


def test_service_without_anything_to_wait_for_runs_the_image_as_it_is(tmp_path: Path) -> None:
    mount = Mount(tmp_path, "/opt/ml", read_only=True)
    spec = ContainerSpec(
        "one", "own", command=("words",), mounts=(mount,), cpus=4, memory_bytes=64 << 30, isolated=True
    )
    service = build(spec)["TaskTemplate"]
    container = service["ContainerSpec"]
    assert "Command" not in container
    assert container["Args"] == ["words"]
    assert container["Env"] == ["A=b"]
    assert container["User"] == "1000:1000"
    assert container["Mounts"] == [{"Type": "bind", "Source": str(tmp_path), "Target": "/opt/ml", "ReadOnly": True}]
    assert service["Resources"] == {
        "Limits": {"Pids": spec.max_processes, "NanoCPUs": 4 * 10**9, "MemoryBytes": 64 << 30}
    }
    # No node is as large as that: most of the largest has to do.
    assert read_promise(build(spec)) == Promise(nano_cpus=4 * 10**9, memory_bytes=12 << 30)
