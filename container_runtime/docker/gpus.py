"""GPUs that Docker containers get, where the engine has the NVIDIA runtime."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import docker
from docker.types import DeviceRequest

from container_runtime.gpus import choose_gpus, list_gpus

GPUS_LABEL = "smdebug-emulator.gpus"
"""Label of a container that holds GPUs: their UUIDs, separated by commas, or ``all``."""
_ALL = "all"


class EngineGpus:
    """The GPUs of one engine."""

    def __init__(self, api: docker.APIClient, info: Mapping[str, Any]) -> None:
        """Look at what the engine says of itself; the GPUs are looked up when a container wants one."""
        self._api = api
        self._choosing = Lock()
        self.has_runtime = "nvidia" in (info.get("Runtimes") or {})

    @contextmanager
    def choose(self, count: int) -> Iterator[tuple[list[DeviceRequest] | None, dict[str, str]]]:
        """Choose ``count`` GPUs for a container that is created in the context, so that no other start chooses them.

        Yields the request for the engine, None for no GPU, and the labels of the container.
        """
        if count == 0 or not self.has_runtime:
            yield None, {}
            return
        capabilities = [["gpu"]]
        with self._choosing:
            if present := list_gpus():
                chosen = choose_gpus(count, present, self._list_held())
                request = DeviceRequest(device_ids=list(chosen), capabilities=capabilities)
                yield [request], {GPUS_LABEL: ",".join(chosen)}
            else:  # the engine has some, of which nobody tells the number here
                yield [DeviceRequest(count=-1, capabilities=capabilities)], {GPUS_LABEL: _ALL}

    def _list_held(self) -> Iterator[list[str]]:
        # Also of containers that are created and will be started.
        for each in self._api.containers(all=True, filters={"label": GPUS_LABEL}):
            if each["State"] not in ("exited", "dead"):
                yield each["Labels"][GPUS_LABEL].split(",")


def read_gpus(labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the UUIDs of the GPUs that a container holds, by its labels; None for all of the machine's."""
    label = labels.get(GPUS_LABEL)
    if label is None:
        return ()
    return None if label == _ALL else tuple(label.split(","))
