"""Memory and CPU counts of instance types."""

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
# GPUs of a family, or of a size of it; all others have one.
_GPUS = {
    "g4dn.12xlarge": 4,
    "g4dn.metal": 8,
    **dict.fromkeys(("g5.12xlarge", "g5.24xlarge", "g6.12xlarge", "g6.24xlarge", "g6e.12xlarge", "g6e.24xlarge"), 4),
    **dict.fromkeys(("g5.48xlarge", "g6.48xlarge", "g6e.48xlarge"), 8),
    "p2.8xlarge": 8,
    "p2.16xlarge": 16,
    "p3.8xlarge": 4,
    "p3.16xlarge": 8,
    **dict.fromkeys(("p3dn", "p4d", "p4de", "p5e", "p5en", "p6-b200"), 8),
    "p5.48xlarge": 8,
}
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


def count_gpus(instance_type: str | None) -> int:
    """Return the number of an instance type's GPUs, as AWS publishes it; 1 for a type that is not listed.

    >>> [count_gpus(each) for each in ("ml.g5.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.m5.large", None)]
    [1, 4, 8, 0, 0]
    """
    found = _INSTANCE_TYPE.fullmatch(instance_type or "")
    if found is None or not has_gpus(found[0]):
        return 0
    return _GPUS.get(f"{found['family']}.{found['size']}", _GPUS.get(found["family"], 1))


def _count_vcpus(size: str) -> int | None:
    if size == "large":
        return 2
    found = re.fullmatch(r"(\d*)xlarge", size)
    return None if found is None else 4 * int(found[1] or 1)
