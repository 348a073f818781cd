"""Record of how long builds took on this machine, and what a build will take."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from container_runtime.images.catalogue import ImageDefinition
from container_runtime.images.lock_files import is_locked
from container_runtime.images.wheelhouse import FOR_GPUS

_RECORD = "builds.json"


def record_build(cache: Path, back_end: str, name: str, seconds: float) -> None:
    """Note how long a build took. A record that cannot be written is not an error: it only feeds an estimate."""
    found = _read(cache) | {f"{back_end}:{name}": round(seconds, 1)}
    fresh = cache / f"{_RECORD}.{os.getpid()}"
    try:
        fresh.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
        fresh.replace(cache / _RECORD)
    except OSError:
        return


def describe_build(cache: Path, back_end: str, definition: ImageDefinition, requirements: Sequence[str]) -> str:
    """Say what a build will take: packages, megabytes to fetch, and how long it took here the last time.

    Args:
        cache: the folder of wheels and environments.
        back_end: ``docker`` or ``process``.
        definition: the image.
        requirements: those of its lock file, or its own.
    """
    parts = []
    if is_locked(requirements):
        names = {line.partition("==")[0] for line in requirements}
        parts.append(f"{sum(FOR_GPUS.match(name) is None for name in names)} packages")
    if definition.fetched_mb:
        with_gpus = any(FOR_GPUS.match(line) for line in requirements)
        larger = ", or some 5 GB where pip finds only wheels for GPUs (docs/install.md)" if with_gpus else ""
        parts.append(f"{definition.fetched_mb} MB to fetch{larger}")
    took = _read(cache).get(f"{back_end}:{definition.name}")
    parts.append(f"the last build here took {took:.0f} s" if took else "a build takes some minutes, once")
    return "; ".join(parts)


def _read(cache: Path) -> dict[str, Any]:
    """Read the record; empty if there is none or it is damaged."""
    try:
        found = json.loads((cache / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, float)} if isinstance(found, dict) else {}
