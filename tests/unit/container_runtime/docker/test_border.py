"""Tests of the messages about the engine."""

import errno
from pathlib import Path
from typing import Any, cast

import docker
import docker.errors
import pytest
import requests

from container_runtime.docker.border import translated
from container_runtime.runtime import ContainerRuntimeError, ContainerStartError, EngineUnavailableError
from container_runtime.swarm.engine import find_address


class WorkerEngine:
    """An engine that is a worker of a Swarm. The client replaces a socket's address by one of its own."""

    base_url = "http+docker://localhost"

    def info(self) -> dict[str, Any]:
        return {"Swarm": {"ControlAvailable": False, "LocalNodeState": "active"}}


@pytest.mark.parametrize("host", ["", "unix:///run/other.sock", "tcp://10.0.0.1:2375"])
def test_an_engine_is_named_as_the_user_names_it(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(EngineUnavailableError) as raised:
        find_address(cast("docker.APIClient", WorkerEngine()))
    assert f"engine at {host or 'unix:///var/run/docker.sock'} is a worker" in str(raised.value)


def test_a_refusal_names_the_engine_as_the_user_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")
    text = "409 Client Error for http+docker://localhost/v1.44/services/create: Conflict"
    with pytest.raises(ContainerRuntimeError) as raised, translated("start it"):
        raise docker.errors.APIError(text)
    assert str(raised.value) == (
        "Cannot start it: 409 Client Error for unix:///run/other.sock/v1.44/services/create: Conflict"
    )


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("http+docker://localhost/v1.44/info", "no Docker engine answers (gone). Start one (smdebug-emulator engine s"),
        ("http://10.0.0.1:2375/v1.44/info", "no Docker engine answers (gone). Start one (smdebug-emulator engine star"),
        ("https://10.0.0.7:30001/v1.44/info", "the Swarm's node at 10.0.0.7:30001 does not answer (gone). See `docke"),
    ],
)
def test_a_lost_node_is_not_an_engine_to_start(
    url: str, advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    monkeypatch.setattr("container_runtime.docker.border._OWN_CONTAINER", tmp_path / "none")
    assert advice in say_lost(url)


def test_a_container_without_the_socket_says_to_mount_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("container_runtime.docker.border._OWN_CONTAINER", tmp_path)
    said = say_lost("http+docker://localhost/info")
    assert "engine start), give this container its socket (docker run -v /var/run/docker.sock:" in said


@pytest.mark.parametrize(("start", "kind"), [(True, ContainerStartError), (False, ContainerRuntimeError)])
def test_an_error_of_a_file_is_not_one_of_the_engine(start: bool, kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised, translated("start it", start=start):
        raise OSError(errno.ENOSPC, "No space left on device", "/scratch")
    assert type(raised.value) is kind
    assert str(raised.value) == "Cannot start it: [Errno 28] No space left on device: '/scratch'"
    with pytest.raises(EngineUnavailableError), translated("ask", start=start):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def say_lost(url: str) -> str:
    with pytest.raises(EngineUnavailableError) as raised, translated("ask"):
        raise requests.ConnectionError("gone", request=requests.Request("GET", url).prepare())
    return str(raised.value)
