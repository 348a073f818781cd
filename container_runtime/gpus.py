"""NVIDIA GPUs of this machine, and which of them a container gets."""

import importlib
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

logger = logging.getLogger(__name__)


def list_gpus() -> list[str]:
    """Return the UUIDs of this machine's GPUs; a divided GPU counts as its MIG instances.

    There are none without a driver, or where ``nvidia-ml-py`` is not installed.
    """
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        logger.debug("There are no GPUs: %s", error)
        return []
    found: list[str] = []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                gpu = nvml.nvmlDeviceGetHandleByIndex(index)
                found += [nvml.nvmlDeviceGetUUID(each) for each in _list_instances(nvml, gpu) or [gpu]]
            except nvml.NVMLError as error:
                logger.warning("GPU %d is not used, the others are: %s", index, error)
    except nvml.NVMLError as error:
        logger.warning("GPUs are not used: %s", error)
    finally:
        nvml.nvmlShutdown()
    return found


def _list_instances(nvml: Any, gpu: Any) -> list[Any]:
    """Return the handles of a GPU's MIG instances. For a GPU without MIG support, NVML raises an error."""
    try:
        is_divided, _ = nvml.nvmlDeviceGetMigMode(gpu)
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu) if is_divided else 0
    except nvml.NVMLError:
        return []
    found = []
    for number in range(most):
        try:
            found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number))
        except nvml.NVMLError:
            # There is no instance with this number.
            continue
    return found


def choose_gpus(count: int, present: Sequence[str], held: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the GPUs of a new container: those that the fewest containers hold, and all if there are not enough.

    Args:
        count: how many the container is to get.
        present: the UUIDs of the machine's GPUs.
        held: the UUIDs that each running container holds.

    >>> choose_gpus(1, ["a", "b"], [["a"]]), choose_gpus(8, ["a", "b"], []), choose_gpus(1, ["a"], [["a"], ["a"]])
    (('b',), ('a', 'b'), ('a',))
    """
    holders = Counter(gpu for each in held for gpu in each)
    chosen = sorted(present, key=lambda gpu: holders[gpu])[:count]
    return tuple(gpu for gpu in present if gpu in chosen)
