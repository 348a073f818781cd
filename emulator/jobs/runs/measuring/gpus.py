"""GPU counters by NVML, where ``nvidia-ml-py`` is installed."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from emulator.jobs.runs.measuring.machine import Figure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

logger = logging.getLogger(__name__)


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

    def measure(self) -> list[Figure]:
        """Return utilization and memory use of each GPU in percent, without values that are currently unavailable.

        For MIG instances, only the memory use is available.
        """
        figures: list[Figure] = []
        for name, handle in self._devices.items():
            for dimension, read in (
                ("GPUUtilization", self._read_utilization),
                ("GPUMemoryUtilization", self._read_memory),
            ):
                try:
                    figures.append(Figure("gpu", name, dimension, read(handle)))
                except self._nvml.NVMLError as error:
                    logger.debug("%s does not tell %s: %s", name, dimension, error)
        return figures

    def _read_utilization(self, handle: Any) -> float:
        return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    def _read_memory(self, handle: Any) -> float:
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        used, total = float(memory.used), float(memory.total)
        return 100 * used / total

    def close(self) -> None:
        """Shut NVML down. Idempotent."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml, self._devices = None, {}
