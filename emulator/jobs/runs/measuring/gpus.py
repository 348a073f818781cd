"""GPU counters by NVML, where ``nvidia-ml-py`` is installed."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from emulator.jobs.runs.measuring.machine import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)


class Gpus:
    """The GPUs of this machine. Where NVML does not answer there are none, as on AWS's instances without a GPU."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: Sequence[Any] = ()
        try:
            nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            logger.debug("GPUs are not measured: %s", error)
            return
        self._nvml = nvml

    def measure(self) -> list[Figure]:
        """Say how busy each is, and how full its memory; of one that does not answer now, nothing."""
        figures: list[Figure] = []
        for index, handle in enumerate(self._handles):
            try:
                rates, memory = (
                    self._nvml.nvmlDeviceGetUtilizationRates(handle),
                    self._nvml.nvmlDeviceGetMemoryInfo(handle),
                )
            except self._nvml.NVMLError as error:
                logger.debug("GPU %d did not answer: %s", index, error)
                continue
            figures += [
                Figure("gpu", f"gpu{index}", "GPUUtilization", float(rates.gpu)),
                Figure("gpu", f"gpu{index}", "GPUMemoryUtilization", 100 * memory.used / memory.total),
            ]
        return figures

    def close(self) -> None:
        """Let go of NVML."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml, self._handles = None, ()
