"""GPU counters by NVML, where ``nvidia-ml-py`` is installed."""

import importlib
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from emulator.jobs.runs.measuring.machine import Figure

logger = logging.getLogger(__name__)

# NVML's samples of processes come up to a second apart.
_SAMPLED_SECONDS = 1.0
# NVML_ERROR_NOT_FOUND.
_NOT_FOUND = 6


class Gpus:
    """The GPUs that a container holds. Without NVML there are none, as on AWS's instances without a GPU.

    If a GPU is divided into MIG instances, these are measured instead. Their names are such as gpu0mig1.
    """

    def __init__(self, held: Collection[str] | None = None) -> None:
        """Open the GPUs.

        Args:
            held: their UUIDs, or those of MIG instances; None for all of this machine. They are named in the order of
                the machine, from gpu0, as the container sees them.
        """
        self._nvml: Any = None
        # NVML handles by name.
        self._devices: dict[str, Any] = {}
        if held is not None and not held:
            return
        try:
            nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            logger.debug("GPUs are not measured: %s", error)
            return
        self._nvml = nvml
        try:
            self._devices = dict(self._list_devices(held))
        except nvml.NVMLError as error:
            logger.warning("GPUs are not measured: %s", error)

    def _list_devices(self, held: Collection[str] | None) -> Iterator[tuple[str, Any]]:
        count = 0
        for number in range(self._nvml.nvmlDeviceGetCount()):
            index = number if held is None else count
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
            except self._nvml.NVMLError as error:
                logger.warning("GPU %d is not measured, the others are: %s", number, error)
                continue
            instances = list(self._list_instances(handle))
            if not instances and self._is_held(handle, held):
                yield f"gpu{index}", handle
                count += 1
            mine = [(place, instance) for place, instance in instances if self._is_held(instance, held)]
            for place, instance in mine:
                yield f"gpu{index}mig{place}", instance
            count += bool(mine)

    def _is_held(self, handle: Any, held: Collection[str] | None) -> bool:
        if held is None:
            return True
        try:
            return self._nvml.nvmlDeviceGetUUID(handle) in held
        except self._nvml.NVMLError:
            return False

    def _list_instances(self, gpu: Any) -> Iterator[tuple[int, Any]]:
        """Yield number and handle of a GPU's MIG instances. For a GPU without MIG support, NVML raises an error."""
        nvml = self._nvml
        try:
            is_divided, _ = nvml.nvmlDeviceGetMigMode(gpu)
            most = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu) if is_divided else 0
        except nvml.NVMLError:
            return
        for number in range(most):
            try:
                yield number, nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
            except nvml.NVMLError:
                # There is no instance with this number.
                continue

    def measure(self, processes: Collection[int] = ()) -> list[Figure]:
        """Return utilization and memory use of each GPU in percent, without values that are currently unavailable.

        For MIG instances, only the memory use is available.

        Args:
            processes: the ids of the container's processes. Where others compute on a GPU, too, and NVML tells each
                one's part, these processes' part is returned.
        """
        figures: list[Figure] = []
        for name, handle in self._devices.items():
            shared = self._list_own(handle, processes)
            for dimension, read in (
                ("GPUUtilization", self._read_utilization),
                ("GPUMemoryUtilization", self._read_memory),
            ):
                try:
                    figures.append(Figure("gpu", name, dimension, read(handle, shared)))
                except self._nvml.NVMLError as error:
                    logger.debug("%s does not tell %s: %s", name, dimension, error)
        return figures

    def _list_own(self, handle: Any, processes: Collection[int]) -> dict[int, int | None] | None:
        """Return the memory of those processes that compute on a GPU; None if no others do, or that is not known."""
        try:
            running = {each.pid: each.usedGpuMemory for each in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
        except self._nvml.NVMLError:
            return None
        # In a container, NVML names processes that are not to be seen from here.
        if not processes or running.keys() <= set(processes) or not all(map(_is_seen, running)):
            return None
        return {pid: memory for pid, memory in running.items() if pid in processes}

    def _read_utilization(self, handle: Any, own: Mapping[int, int | None] | None) -> float:
        if own is not None:
            with suppress(self._nvml.NVMLError):
                return self._read_own_utilization(handle, own)
        return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    def _read_own_utilization(self, handle: Any, own: Collection[int]) -> float:
        since = int((time.time() - _SAMPLED_SECONDS) * 1e6)
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(handle, since)
        except self._nvml.NVMLError as error:
            if getattr(error, "value", None) == _NOT_FOUND:  # no process has computed since
                return 0.0
            raise
        found = [[each.smUtil for each in samples if each.pid == pid] for pid in own]
        return min(100.0, float(sum(sum(each) / len(each) for each in found if each)))

    def _read_memory(self, handle: Any, own: Mapping[int, int | None] | None) -> float:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        parts = [] if own is None else [part for part in own.values() if part is not None]
        used = memory.used if own is None or len(parts) < len(own) else sum(parts)
        return 100 * float(used) / float(memory.total)

    def close(self) -> None:
        """Shut NVML down. Idempotent."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml, self._devices = None, {}


def _is_seen(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
