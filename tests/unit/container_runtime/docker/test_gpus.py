"""Tests of the GPUs that Docker containers get, with a played engine and NVML."""

import sys
from types import ModuleType
from typing import Any

import pytest

from container_runtime.docker.gpus import GPUS_LABEL, EngineGpus, read_gpus
from container_runtime.gpus import list_gpus

WITH_RUNTIME = {"Runtimes": {"runc": {}, "nvidia": {"path": "nvidia-container-runtime"}}}


class NVMLError(Exception):
    pass


class Nvml(ModuleType):
    """Three GPUs: the second is lost, the third divided."""

    NVMLError = NVMLError
    is_open = False

    def __init__(self) -> None:
        super().__init__("pynvml")

    def nvmlInit(self) -> None:
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:
        return 3

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index == 1:
            raise NVMLError("GPU is lost")
        return f"GPU-{index}"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return handle

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if handle == "GPU-0":
            raise NVMLError("Not Supported")
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, number: int) -> str:
        if number != 2:
            raise NVMLError("Not Found")
        return "MIG-2"


class Engine:
    def __init__(self, *held: str, state: str = "running") -> None:
        self.held = held
        self.state = state

    def containers(self, *, all: bool, filters: dict[str, str]) -> list[dict[str, Any]]:  # noqa: A002 - the client's name
        assert all
        assert filters == {"label": GPUS_LABEL}
        return [{"Labels": {GPUS_LABEL: each}, "State": self.state} for each in self.held]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    module = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def choose(engine: Engine, count: int) -> tuple[Any, dict[str, str]]:
    with EngineGpus(engine, WITH_RUNTIME).choose(count) as (requests, labels):  # type: ignore[arg-type]
        return requests and [dict(each) for each in requests], labels


def test_gpus_are_listed_without_the_lost_one(nvml: Nvml) -> None:
    assert list_gpus() == ["GPU-0", "MIG-2"]
    assert not nvml.is_open


def test_a_container_gets_the_gpu_that_nobody_holds(nvml: Nvml) -> None:
    requests, labels = choose(Engine("GPU-0"), 1)
    (request,) = requests
    assert (request["DeviceIDs"], request["Capabilities"]) == (["MIG-2"], [["gpu"]])
    assert labels == {GPUS_LABEL: "MIG-2"}
    assert read_gpus(labels) == ("MIG-2",)


@pytest.mark.parametrize(("state", "chosen"), [("created", "MIG-2"), ("exited", "GPU-0")])
def test_a_container_that_will_be_started_holds_its_gpu(nvml: Nvml, state: str, chosen: str) -> None:
    assert choose(Engine("GPU-0", state=state), 1)[1] == {GPUS_LABEL: chosen}


def test_a_container_that_asks_for_more_than_there_are_gets_all(nvml: Nvml) -> None:
    assert choose(Engine(), 8)[1] == {GPUS_LABEL: "GPU-0,MIG-2"}


def test_an_engine_whose_gpus_cannot_be_listed_hands_out_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    requests, labels = choose(Engine(), 1)
    assert requests[0]["Count"] == -1
    assert labels == {GPUS_LABEL: "all"}
    assert read_gpus(labels) is None


@pytest.mark.parametrize(("info", "count"), [(WITH_RUNTIME, 0), ({"Runtimes": {"runc": {}}}, 1), ({}, 1)])
def test_without_a_gpu_instance_or_the_runtime_there_is_none(nvml: Nvml, info: dict[str, Any], count: int) -> None:
    gpus = EngineGpus(Engine(), info)  # type: ignore[arg-type]
    with gpus.choose(count) as chosen:
        assert chosen == (None, {})
    assert read_gpus({}) == ()
