"""Substitute for ``nvidia-ml-py``: two GPUs, healthy or sick as a file says.

A sick pair has one GPU that is hardly used, one of middling use, and memory that grows again and again.
"""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STATE = Path(__file__).with_name("state")
_GROWTH_S = 4.0


class NVMLError(Exception):
    """An error of NVML."""


def _is_sick() -> bool:
    return STATE.read_text() == "sick"


def nvmlInit() -> None: ...


def nvmlShutdown() -> None: ...


def nvmlDeviceGetCount() -> int:
    return 2


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetUUID(handle: int) -> str:
    return f"GPU-{handle}"


def nvmlDeviceGetMigMode(handle: int) -> list[int]:
    raise NVMLError("Not Supported")


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[Any]:
    raise NVMLError("Not Supported")


def nvmlDeviceGetUtilizationRates(handle: int) -> Any:
    return SimpleNamespace(gpu=(5, 65)[handle] if _is_sick() else 95)


def nvmlDeviceGetMemoryInfo(handle: int) -> Any:
    share = 0.2 + 0.3 * (time.monotonic() % _GROWTH_S) / _GROWTH_S if _is_sick() else 0.8
    return SimpleNamespace(used=int(share * (1 << 30)), total=1 << 30)
