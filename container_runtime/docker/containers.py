"""Logs, exit status and resource meters of running Docker containers."""

import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import docker
import requests.exceptions

from container_runtime.docker.border import (
    REQUEST_SECONDS,
    allowed,
    build_url,
    is_read_timeout,
    raise_for_status,
    translated,
)
from container_runtime.docker.control_group import ControlGroupMeter
from container_runtime.docker.gpus import read_gpus
from container_runtime.docker.log import follow_log
from container_runtime.docker.sidecar import read_sidecar
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError, Exit, LogLine, Usage

_KILL_SECONDS = 30.0
_TERMINATED_CODE = 128 + signal.SIGTERM


class EngineContainers:
    """The containers of one engine, by their ids. See ``ContainerRuntime`` for what each method does.

    Args:
        api: client of the engine.
        reconnect: opens another connection to the engine, and closes it again; raises ``EngineUnavailableError`` if the
            engine does not answer.
        ended_with_engine: ids of the containers that the engine has ended because it was shut down. All objects for one
            engine share it.
    """

    def __init__(self, api: docker.APIClient, reconnect: Callable[[], None], ended_with_engine: set[str]) -> None:
        self._api = api
        self._reconnect = reconnect
        self._ended_with_engine = ended_with_engine

    def logs(self, container_id: str) -> Iterator[LogLine]:
        return follow_log(self._api, container_id, lambda: self.wait(container_id))

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        with translated(f"wait for container {container_id}"):
            try:
                response = self._api.post(
                    build_url(self._api, f"/containers/{container_id}/wait"),
                    timeout=(REQUEST_SECONDS, None if timeout is None else max(timeout, 0.001)),
                )
            except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as exc:
                if timeout is not None and is_read_timeout(exc):
                    return None
                raise
            raise_for_status(response)
            state = self._api.inspect_container(container_id)["State"]
            code = int(state["ExitCode"])
            if self._was_killed(container_id, state):
                # An engine that is shut down ends its containers. Connections that are open still work meanwhile.
                try:
                    self._reconnect()
                except EngineUnavailableError:
                    self._ended_with_engine.add(container_id)
                    raise
        if container_id in self._ended_with_engine:
            # Its program may have handled the signal and ended with 0, but its work was not done.
            code = code or _TERMINATED_CODE
        return Exit(code=code, out_of_memory=bool(state["OOMKilled"]) and code != 0)

    def read_usage(self, container_id: str) -> Usage | None:
        with translated(f"measure container {container_id}"):
            stats = self._api.stats(container_id, stream=False, one_shot=True)
        memory = stats["memory_stats"]
        if "usage" not in memory:
            return None  # the engine has no counters for a container that does not run
        # The name depends on the version of the kernel's control groups.
        cache = memory["stats"].get("inactive_file", memory["stats"].get("total_inactive_file", 0))
        return Usage(stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9, memory["usage"] - cache)

    def open_meter(self, container_id: str) -> ControlGroupMeter | None:
        with translated(f"measure container {container_id}"):
            found = self._api.inspect_container(container_id)
        pid = found["State"]["Pid"]
        if not pid:
            return None
        gpus = read_gpus(found["Config"]["Labels"] or {})
        return ControlGroupMeter(pid, behind_sidecar=read_sidecar(found) is not None, gpus=gpus)

    def stop(self, container_id: str, grace_seconds: float) -> None:
        # The engine's stop request accepts only whole seconds, so send the signals separately.
        for number, seconds in (("SIGTERM", grace_seconds), ("SIGKILL", _KILL_SECONDS)):
            with translated(f"stop container {container_id}"), allowed(409):  # the container is not running
                self._api.kill(container_id, number)
            if self.wait(container_id, seconds) is not None:
                return
        raise ContainerRuntimeError(
            f"Container {container_id} did not end {_KILL_SECONDS:g} s after SIGKILL; look at `docker inspect`."
        )

    def _was_killed(self, container_id: str, state: Mapping[str, Any]) -> bool:
        """Return whether the engine sent a signal to a container, by itself or for a client."""
        # The engine keeps its last events until it is restarted.
        events = self._api.events(
            until=state["FinishedAt"], filters={"container": container_id, "event": "kill"}, decode=True
        )
        return any(True for _ in events)
