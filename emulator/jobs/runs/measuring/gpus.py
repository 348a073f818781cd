"""GPU counters by NVML, where ``nvidia-ml-py`` is installed."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from emulator.jobs.runs.measuring.machine import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


class Gpus:
    """The GPUs of this machine. Without NVML there are none, as on AWS's instances without a GPU.

    If a GPU is divided into MIG instances, these are measured instead. Their names are such as gpu0mig1.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        # NVML handles by name.
        self._devices: dict[str, Any] = {}
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
            self._devices = dict(self._list_devices())
        except nvml.NVMLError as error:
            logger.warning("GPUs are not measured: %s", error)

    def _list_devices(self) -> Iterator[tuple[str, Any]]:
        for index in range(self._nvml.nvmlDeviceGetCount()):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except self._nvml.NVMLError as error:
                logger.warning("GPU %d is not measured, the others are: %s", index, error)
                continue
            instances = list(self._list_instances(handle))
            if not instances:
                yield f"gpu{index}", handle
            for number, instance in instances:
                yield f"gpu{index}mig{number}", instance

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
