"""Tests of GPU counters by NVML, with a substitute for ``nvidia-ml-py``."""

import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from emulator.jobs.runs.measuring.gpus import Gpus


class NVMLError(Exception):
    value = 999


class NotFoundError(NVMLError):
    value = 6


class Nvml(ModuleType):
    NVMLError = NVMLError

    def __init__(self, *, driver: bool = True, lost: int | None = None, divided: int | None = None) -> None:
        super().__init__("pynvml")
        self.driver, self.open = driver, False
        self.lost, self.divided = lost, divided
        # Memory by process, and what NVML tells of each one's use; an error where it does not.
        self.running: dict[int, int | None] | NVMLError = NVMLError("Not Supported")
        self.used: list[tuple[int, int]] | NVMLError = NVMLError("Not Supported")

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index == self.lost:
            raise NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetUUID(self, handle: int | str) -> str:
        return "MIG-x" if handle == "instance" else f"GPU-{handle}"

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        if self.divided is None:
            raise NVMLError("Not Supported")
        return [int(handle == self.divided)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, number: int) -> str:
        if number not in (0, 3):
            raise NVMLError("Not Found")
        return "instance"

    def nvmlDeviceGetUtilizationRates(self, handle: int | str) -> Any:
        if handle == 1:
            raise NVMLError("GPU is lost")
        if handle == "instance":
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=87, memory=3)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int | str) -> list[Any]:
        if isinstance(self.running, NVMLError):
            raise self.running
        return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in self.running.items()]

    def nvmlDeviceGetProcessUtilization(self, handle: int | str, since_us: int) -> list[Any]:
        if isinstance(self.used, NVMLError):
            raise self.used
        return [SimpleNamespace(pid=pid, smUtil=used) for pid, used in self.used]

    def nvmlDeviceGetMemoryInfo(self, handle: int | str) -> Any:
        if handle == 1:
            raise NVMLError("GPU is lost")
        return SimpleNamespace(used=6 << 30, total=24 << 30)


def test_a_machine_with_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    gpus = Gpus()
    rows = [(each.type, each.name, each.dimension, each.value) for each in gpus.measure()]
    assert rows == [("gpu", "gpu0", "GPUUtilization", 87.0), ("gpu", "gpu0", "GPUMemoryUtilization", 25.0)]
    gpus.close()
    assert not nvml.open


def test_a_lost_gpu_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(lost=1))
    assert {each.name for each in Gpus().measure()} == {"gpu0"}
    assert "GPU 1 is not measured, the others are: GPU is lost" in caplog.text


def test_instances_of_a_divided_gpu_tell_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(divided=1))
    rows = [(each.name, each.dimension, each.value) for each in Gpus().measure()]
    assert rows == [
        ("gpu0", "GPUUtilization", 87.0),
        ("gpu0", "GPUMemoryUtilization", 25.0),
        ("gpu1mig0", "GPUMemoryUtilization", 25.0),
        ("gpu1mig3", "GPUMemoryUtilization", 25.0),
    ]


@pytest.mark.parametrize(
    ("held", "names"),
    [
        (("GPU-0",), {"gpu0"}),
        (("MIG-x",), {"gpu0mig0", "gpu0mig3"}),
        (("GPU-0", "MIG-x"), {"gpu0", "gpu1mig0", "gpu1mig3"}),
        (("GPU-7",), set()),
        ((), set()),
    ],
)
def test_only_what_a_container_holds_is_measured(
    monkeypatch: pytest.MonkeyPatch, held: tuple[str, ...], names: set[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(divided=1))
    assert {each.name for each in Gpus(held).measure()} == names


def test_a_container_that_holds_the_second_gpu_sees_it_as_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml()
    monkeypatch.setattr(nvml, "nvmlDeviceGetUtilizationRates", lambda handle: SimpleNamespace(gpu=10 + handle))
    monkeypatch.setattr(nvml, "nvmlDeviceGetMemoryInfo", lambda _: SimpleNamespace(used=1, total=4))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    rows = [(each.name, each.dimension, each.value) for each in Gpus(["GPU-1"]).measure()]
    assert rows == [("gpu0", "GPUUtilization", 11.0), ("gpu0", "GPUMemoryUtilization", 25.0)]


OWN, OTHER, UNSEEN = os.getpid(), os.getppid(), 1 << 30


@pytest.mark.parametrize(
    ("running", "used", "utilization", "memory"),
    [
        ({OWN: 3 << 30}, [(OWN, 30)], 87.0, 25.0),
        ({OWN: 3 << 30, OTHER: 3 << 30}, [(OWN, 30), (OTHER, 50), (OWN, 40)], 35.0, 12.5),
        ({OTHER: 6 << 30}, [(OTHER, 50)], 0.0, 0.0),
        ({OWN: 3 << 30, OTHER: 3 << 30}, NotFoundError("Not Found"), 0.0, 12.5),
        ({OWN: 3 << 30, OTHER: 3 << 30}, NVMLError("Not Supported"), 87.0, 12.5),
        ({OWN: None, OTHER: None}, [(OWN, 30)], 30.0, 25.0),
        ({OWN: 3 << 30, UNSEEN: 3 << 30}, [(OWN, 30)], 87.0, 25.0),
        (NVMLError("Not Supported"), [(OWN, 30)], 87.0, 25.0),
    ],
    ids=["alone", "both", "idle", "unsampled", "no-utilization", "no-memory", "other-namespace", "no-processes"],
)
def test_a_job_is_measured_by_its_part_of_a_gpu_that_others_use_too(
    monkeypatch: pytest.MonkeyPatch, running: Any, used: Any, utilization: float, memory: float
) -> None:
    nvml = Nvml()
    nvml.running, nvml.used = running, used
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    rows = [(each.name, each.dimension, each.value) for each in Gpus(["GPU-0"]).measure([OWN])]
    assert rows == [("gpu0", "GPUUtilization", utilization), ("gpu0", "GPUMemoryUtilization", memory)]


@pytest.mark.parametrize("module", [None, Nvml(driver=False)])
def test_a_machine_without(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    gpus = Gpus()
    assert gpus.measure() == []
    gpus.close()
