"""GPUs that Docker containers get, where the engine has the NVIDIA runtime."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any

import docker
from docker.types import DeviceRequest

from container_runtime.gpus import choose_gpus, list_gpus

GPUS_LABEL = "smdebug-emulator.gpus"
"""Label of a container that holds GPUs: their UUIDs, separated by commas, or ``all``."""
_ALL = "all"


class EngineGpus:
    """The GPUs of one engine.

    Attributes:
        guard: held from ``choose`` until the container exists, so that two starts do not choose the same GPU.
    """

    def __init__(self, api: docker.APIClient, info: Mapping[str, Any]) -> None:
        """Look at what the engine says of itself; the GPUs are looked up when a container wants one."""
        self._api = api
        self.guard: AbstractContextManager[bool] = Lock()
        self.has_runtime = "nvidia" in (info.get("Runtimes") or {})

    def choose(self, count: int) -> tuple[list[DeviceRequest] | None, dict[str, str]]:
        """Choose the GPUs of a container.

        Args:
            count: how many the container is to get.

        Returns:
            The request for the engine, None for no GPU, and the labels of the container.
        """
        if count == 0 or not self.has_runtime:
            return None, {}
        capabilities = [["gpu"]]
        present = list_gpus()
        if not present:  # the engine has some, of which nobody tells the number here
            return [DeviceRequest(count=-1, capabilities=capabilities)], {GPUS_LABEL: _ALL}
        chosen = choose_gpus(count, present, self._list_held())
        request = DeviceRequest(device_ids=list(chosen), capabilities=capabilities)
        return [request], {GPUS_LABEL: ",".join(chosen)}

    def _list_held(self) -> Iterator[list[str]]:
        for each in self._api.containers(filters={"label": GPUS_LABEL}):
            yield each["Labels"][GPUS_LABEL].split(",")


def read_gpus(labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the UUIDs of the GPUs that a container holds, by its labels; None for all of the machine's."""
    label = labels.get(GPUS_LABEL)
    if label is None:
        return ()
    return None if label == _ALL else tuple(label.split(","))
