"""Memory and CPU counts of instance types."""

from __future__ import annotations

import re

GIB = 1 << 30

# Memory in GiB per vCPU, as AWS publishes it, for the families that training jobs use most.
_GIB_PER_VCPU = {
    **dict.fromkeys(("m4", "m5", "m5d", "m6i", "m7i", "m8i", "g4dn", "g5"), 4.0),
    **dict.fromkeys(("c5", "c5n", "c6i", "c7i", "c8i"), 2.0),
    **dict.fromkeys(("r5", "r5d", "r6i", "r7i", "r8i"), 8.0),
    "c4": 1.875,
    "g6": 4.0,
    "g6e": 8.0,
    "p2": 15.25,
    "p3": 7.625,
}
# Memory in GiB of burstable instances, which do not follow the ratio.
_T_SIZES = {"medium": 4, "large": 8, "xlarge": 16, "2xlarge": 32}
_INSTANCE_TYPE = re.compile(r"ml\.(?P<family>[a-z0-9-]+)\.(?P<size>[a-z0-9]+)")


def find_memory_bytes(instance_type: str | None) -> int | None:
    """Return an instance type's memory in bytes; None if its family or size is unknown."""
    found = _INSTANCE_TYPE.fullmatch(instance_type or "")
    if found is None:
        return None
    family, size = found["family"], found["size"]
    if family in ("t2", "t3"):
        return _T_SIZES[size] * GIB if size in _T_SIZES else None
    vcpus = _count_vcpus(size)
    ratio = _GIB_PER_VCPU.get(family)
    return None if ratio is None or vcpus is None else int(ratio * vcpus * GIB)


def find_cpus(instance_type: str | None) -> int | None:
    """Return the number of an instance type's vCPUs; None if its size is unknown."""
    found = _INSTANCE_TYPE.fullmatch(instance_type or "")
    if found is None:
        return None
    return 2 if found["family"] in ("t2", "t3") and found["size"] == "medium" else _count_vcpus(found["size"])


def has_gpus(instance_type: str) -> bool:
    """Return whether an instance type has GPUs: it does if its family begins with g or p.

    >>> has_gpus("ml.g4dn.xlarge"), has_gpus("ml.p5.48xlarge"), has_gpus("ml.m5.large")
    (True, True, False)
    """
    found = _INSTANCE_TYPE.fullmatch(instance_type)
    return found is not None and re.match(r"[gp]\d", found["family"]) is not None


def _count_vcpus(size: str) -> int | None:
    if size == "large":
        return 2
    found = re.fullmatch(r"(\d*)xlarge", size)
    return None if found is None else 4 * int(found[1] or 1)
