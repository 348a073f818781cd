"""Memory of warm interpreters.

Goal: 300 MB with PyTorch, 500 MB with TensorFlow. What counts is the proportional set size: a page that several
processes have in memory counts once for all of them together. "Forks" are containers of the image that wait.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.shared.rule_job import wait_until
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions

_GOALS = {"pytorch-training": 300, "tensorflow-training": 500}


def read_pss_mb(pid: int) -> float:
    """Return the proportional set size of a process in MB (10^6 bytes)."""
    found = re.search(r"^Pss: +(\d+) kB$", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def measure_image(name: str) -> float:
    """Return the memory of an image's warm interpreter.

    Raises:
        RuntimeError: its imports failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        runtime = LocalProcesses(Path(folder), warm=WarmOptions((name,)))
        try:
            (interpreter,) = runtime._warm._interpreters.values()  # noqa: SLF001 - nothing else has to know its pid
            wait_until(lambda: interpreter.is_ready or interpreter.has_ended, lambda: name)
            if interpreter.has_ended:
                raise RuntimeError(interpreter.describe_end())
            return read_pss_mb(interpreter.process.pid)
        finally:
            runtime.close()


def measure() -> Iterator[str]:
    for definition in ImageCatalogue():
        if definition.warm_modules and not definition.on_demand:
            try:
                memory = measure_image(definition.name)
            except ValueError:  # its environment is not built
                yield f"{definition.name:<24} not built for {sys.prefix}"
                continue
            goal = f"   goal: {_GOALS[definition.name]} MB" if definition.name in _GOALS else ""
            yield f"{definition.name:<24} {memory:6.0f} MB{goal}"
