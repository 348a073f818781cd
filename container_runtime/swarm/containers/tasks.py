"""Task states of containers' services, as reported by the Swarm manager."""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Any

import docker
import docker.errors

from container_runtime.docker.border import REQUEST_SECONDS, build_url, raise_for_status, translated
from container_runtime.runtime import ContainerNotFoundError

logger = logging.getLogger(__name__)

NAME_LABEL = "smdebug-emulator.name"
"""Label of a container's service: name of the container."""
_END_SECONDS, _POLL_SECONDS = 10.0, 0.05


class Tasks:
    """The services of one emulator, and their tasks. A container's id is its service's name.

    Attributes:
        places: known locations of containers: the node and the id there. A container never moves.
    """

    def __init__(self, api: docker.APIClient, labels: Mapping[str, str]) -> None:
        """Start without known locations.

        Args:
            api: client of a manager's engine.
            labels: labels of the emulator's services.
        """
        self._api = api
        self._labels = labels
        self.places: dict[str, tuple[str, str]] = {}

    def list_services(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the services of the emulator's containers that have every label in ``labels``, as the engine does."""
        with translated("list containers"):
            found = self._api.services(filters={"label": self.list_label_filters(labels)})
        return [each for each in found if NAME_LABEL in each["Spec"]["Labels"]]

    def list_label_filters(self, labels: Mapping[str, str] | None = None) -> list[str]:
        """Return the engine's filters for what belongs to the emulator and has every label in ``labels``."""
        return [f"{key}={value}" for key, value in {**(labels or {}), **self._labels}.items()]

    def list_tasks(self, name: str) -> list[dict[str, Any]]:
        """Return the tasks of a service, the newest first; none if the service does not exist."""
        with translated(f"look at container {name}"):
            try:
                tasks: list[dict[str, Any]] = self._api.tasks({"service": name})
            except docker.errors.NotFound:
                return []
        # The Swarm may itself replace a task that it withdrew before it began.
        return sorted(tasks, key=itemgetter("CreatedAt"), reverse=True)

    def locate(self, container_id: str) -> tuple[str, str]:
        """Return the node that runs a container, and the container's id there.

        Raises:
            ContainerNotFoundError: the container does not exist.
        """
        if container_id not in self.places:
            found = next((each for each in self.list_services({}) if each["Spec"]["Name"] == container_id), None)
            tasks = self.list_tasks(container_id) if found else []
            placed = [each for each in tasks if each["Status"].get("ContainerStatus", {}).get("ContainerID")]
            if not placed:
                raise ContainerNotFoundError(f"The Swarm has no container {container_id}.")
            self.places[container_id] = (placed[0]["NodeID"], placed[0]["Status"]["ContainerStatus"]["ContainerID"])
        return self.places[container_id]

    def end(self, container_id: str) -> None:
        """Make the Swarm end a container whose node does not answer, as soon as the node is back.

        When a job service is removed, the engine does not end its task. So the service is first changed to complete no
        tasks.
        """
        deadline = time.monotonic() + _END_SECONDS
        with translated(f"end container {container_id}"), suppress(docker.errors.NotFound):
            while not self._complete_nothing(container_id) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        while any(
            each["DesiredState"] != "remove" and each["Status"]["State"] != "rejected"
            for each in self.list_tasks(container_id)
        ):
            if time.monotonic() > deadline:
                logger.warning("The Swarm has not ended container %s within %g s.", container_id, _END_SECONDS)
                return
            time.sleep(_POLL_SECONDS)

    def _complete_nothing(self, container_id: str) -> bool:
        """Change a service to complete no tasks. Return False if another thread changed it at the same time."""
        service = self._api.inspect_service(container_id)
        changed = {**service["Spec"], "Mode": {"ReplicatedJob": {"MaxConcurrent": 0, "TotalCompletions": 0}}}
        changed["TaskTemplate"]["ForceUpdate"] = 1
        url = build_url(self._api, f"/services/{service['ID']}/update")
        try:
            version = {"version": service["Version"]["Index"]}
            raise_for_status(self._api.post(url, json=changed, params=version, timeout=REQUEST_SECONDS))
        except docker.errors.APIError as exc:
            if "out of sequence" not in str(exc):
                raise
            return False
        return True

    def remove_service(self, container_id: str) -> None:
        """Remove a container's service. The Swarm decides when its task ends. Idempotent."""
        with translated(f"remove container {container_id}"), suppress(docker.errors.NotFound):
            services = self._api.services(filters={"name": container_id})
            if any(each["Spec"]["Name"] == container_id for each in services):
                self._api.remove_service(container_id)
