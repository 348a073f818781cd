"""Tests of the messages about the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from container_runtime.runtime import EngineUnavailableError
from container_runtime.swarm.engine import find_address

if TYPE_CHECKING:
    import docker


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
