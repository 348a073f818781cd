"""Wait until the spare containers of a benchmark are ready."""

import time
from contextlib import closing, suppress
from typing import Any

import docker
import docker.errors

from container_runtime.docker.spares.spare import SPARE_LABEL

_SECONDS = 180.0
_POLL_SECONDS = 0.5
# What a program that waits takes of the processor meanwhile.
_IDLE_NS = 5_000_000


def wait_for_spares(images: set[str]) -> None:
    """Wait until each image has a spare container, and none of all spare containers has work.

    On a machine of its own, they are those of the benchmark's emulator.

    Raises:
        RuntimeError: it takes too long.
    """
    deadline = time.monotonic() + _SECONDS
    with closing(docker.from_env()) as engine:
        before: dict[str, int] = {}
        while time.monotonic() < deadline:
            found: dict[str, int] = {}
            ready: set[str] = set()
            for container in engine.containers.list(filters={"label": SPARE_LABEL}):
                # One that was given away has another name.
                name = str(container.name)
                if name.startswith("smdebug-spare-"):
                    with suppress(docker.errors.APIError, KeyError):
                        stats: Any = container.stats(stream=False, one_shot=True)
                        found[name] = stats["cpu_stats"]["cpu_usage"]["total_usage"]
                        ready.add(container.attrs["Config"]["Image"].partition(":")[0].rpartition("/")[2])
            idle = found.keys() == before.keys() and all(found[each] - before[each] < _IDLE_NS for each in found)
            if idle and images <= ready:
                return
            before = found
            time.sleep(_POLL_SECONDS)
    raise RuntimeError(f"after {_SECONDS:.0f} s there are spare containers of {sorted(ready)}, not of {sorted(images)}")
