"""Volumes of containers on a Swarm node."""

from contextlib import suppress

import docker
import docker.errors

from container_runtime.docker.border import translated
from container_runtime.swarm.containers.tasks import Tasks


def remove_ended_volumes(api: docker.APIClient, tasks: Tasks) -> None:
    """Remove the volumes of lost containers from a node that is back and has ended them.

    Args:
        api: client of the node's engine.
        tasks: tasks of the emulator.
    """
    with translated("list volumes that are left on a node"):
        left = api.volumes(filters={"label": tasks.list_label_filters()})["Volumes"] or []
        names = {each["Spec"]["Name"] for each in tasks.list_services({})}  # a service precedes its volumes
        ended = [each["Name"] for each in left if each["Name"].rpartition("-")[0] not in names]
        for volume in ended:
            with suppress(docker.errors.APIError):  # its container has not ended yet
                api.remove_volume(volume)


def remove_volumes(api: docker.APIClient, container_id: str) -> None:
    """Remove the volumes of a container.

    Args:
        api: client of the node's engine.
        container_id: id of the container.
    """
    with translated(f"remove the volumes of container {container_id}"):
        left = api.volumes(filters={"name": f"{container_id}-"})["Volumes"] or []
        for each in left:
            try:
                api.remove_volume(each["Name"])
            except docker.errors.APIError as exc:
                if exc.status_code not in (404, 409):  # already removed, or in use and removed later
                    raise
