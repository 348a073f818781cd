"""Tests of GPU counters by NVML, with a substitute for ``nvidia-ml-py``."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from emulator.jobs.runs.measuring.gpus import Gpus


class NVMLError(Exception):
    pass


class Nvml(ModuleType):
    NVMLError = NVMLError

    def __init__(self, *, driver: bool = True) -> None:
        super().__init__("pynvml")
        self.driver, self.open = driver, False

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if handle == 1:
            raise NVMLError("GPU is lost")
        return SimpleNamespace(gpu=87, memory=3)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(used=6 << 30, total=24 << 30)


def test_a_machine_with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    gpus = Gpus()
    rows = [(each.type, each.name, each.dimension, each.value) for each in gpus.measure()]
    assert rows == [("gpu", "gpu0", "GPUUtilization", 87.0), ("gpu", "gpu0", "GPUMemoryUtilization", 25.0)]
    gpus.close()
    assert not nvml.open


@pytest.mark.parametrize("module", [None, Nvml(driver=False)])
def test_a_machine_without(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    gpus = Gpus()
    assert gpus.measure() == []
    gpus.close()
