"""Tests of the measurement of a real GPU."""

import subprocess

import pytest

from container_runtime.gpus import list_gpus
from emulator.jobs.runs.measuring.gpus import Gpus

pytestmark = pytest.mark.gpu


def test_gpus_are_listed_as_the_driver_lists_them() -> None:
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=400).stdout
    present = list_gpus()
    assert present
    assert all(each in listed for each in present)


def test_a_held_gpu_tells_its_memory() -> None:
    gpus = Gpus(list_gpus()[:1])
    try:
        (memory,) = (each for each in gpus.measure() if each.dimension == "GPUMemoryUtilization")
    finally:
        gpus.close()
    assert memory.name.startswith("gpu0")
    assert 0 <= memory.value <= 100
