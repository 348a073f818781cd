"""The console's first plot of a run of 100,000 steps and 500 tensors, and what reading it takes of memory.

    python -m benchmarks console

The run lies in a folder: a thousand steps are written, and linked for the others, whose values are therefore theirs.
The process that reads is asked as the emulator asks it, when it has been started as a page's stream starts it.
`CONSOLE_STEPS` in the environment makes the run smaller.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._scratch import scratch
from emulator.api.run_readers import RunReaders, build_reader_environment
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.writing.file_writer import FileWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = int(os.environ.get("CONSOLE_STEPS", "100000"))
TENSORS, WRITTEN = 500, 1000
ACCOUNT = "123456789012"


def measure() -> Iterator[str]:
    with scratch() as folder:
        run = write_run(folder / "run")
        with open_reader() as readers:
            yield f"{STEPS:,} steps x {TENSORS} tensors, the process that reads is there:"
            readers.warm(ACCOUNT)
            # Until it has imported what it needs: a page that was opened has waited for nothing else.
            readers.ask(ACCOUNT, write_small(folder / "small"), "describe", {})
            described = ask(readers, run, "describe")
            yield f"  the tree of tensors, the run not opened before: {described[0] * 1000:.0f} ms"
            first = ask(readers, run, "series", tensors=["loss"], most=24, points=800)
            yield f"  the first plot after it: {first[0] * 1000:.0f} ms ({first[1]} steps)"
            second = ask(readers, run, "series", tensors=["tensor/100"], most=24, points=800)
            yield f"  another tensor: {second[0] * 1000:.0f} ms"
            full = ask(readers, run, "series", tensors=["loss"], most=1000, points=800)
            yield f"  with {full[1]} steps: {full[0] * 1000:.0f} ms"
            again = ask(readers, run, "series", tensors=["loss"], most=1000, points=800)
            yield f"  the same again: {again[0] * 1000:.0f} ms"
            heat = ask(readers, run, "heat-map", regex="^tensor/1", columns=120)
            yield f"  a heat map of 111 tensors: {heat[0] * 1000:.0f} ms"
            yield f"  memory of the process: {read_resident_mb(readers):.0f} MB"


@contextmanager
def open_reader() -> Iterator[RunReaders]:
    readers = RunReaders(lambda _: build_reader_environment({}), answer_seconds=300)
    try:
        yield readers
    finally:
        readers.close()


def ask(readers: RunReaders, run: Path, question: str, **arguments: Any) -> tuple[float, int]:
    """Seconds until the answer, and of how many steps it is."""
    began = time.perf_counter()
    answer = readers.ask(ACCOUNT, str(run), question, arguments)
    seconds = time.perf_counter() - began
    return seconds, answer["series"][0]["read"] if "series" in answer else 0


def read_resident_mb(readers: RunReaders) -> float:
    pids = {
        int(pid) for path in Path(f"/proc/{os.getpid()}/task").glob("*/children") for pid in path.read_text().split()
    }
    sizes = [Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0] for pid in pids]
    assert readers is not None
    return max(map(int, sizes)) / 1024


def write_small(folder: Path) -> str:
    write_collections(folder)
    with FileWriter(str(folder), "worker_0", 0) as writer:
        writer.write_tensor(np.float32(1), "loss")
    (folder / END_OF_JOB_FILE).touch()
    return str(folder)


def write_collections(folder: Path) -> None:
    manager = CollectionManager()
    for name, regex in {"losses": "^loss", "custom": "^tensor/", "all": None, "default": None}.items():
        manager.add(Collection(name, include_regex=regex))
    manager.set_num_workers(1)
    manager.export(str(folder), "worker_0_collections.json")


def write_run(folder: Path) -> Path:
    """A thousand steps, and links to their index files for the others."""
    write_collections(folder)
    names = [f"tensor/{number}" for number in range(TENSORS - 1)]
    for step in range(min(WRITTEN, STEPS)):
        with FileWriter(str(folder), "worker_0", step) as writer:
            writer.write_tensor(np.float32(1 / (step + 1)), "loss")
            for number, name in enumerate(names):
                writer.write_tensor(np.float32(step + number), name)
    originals = sorted((folder / "index" / f"{0:09d}").iterdir())
    for first in range(WRITTEN, STEPS, WRITTEN):
        block = folder / "index" / f"{first // WRITTEN:09d}"
        block.mkdir()
        for original in originals[: STEPS - first]:
            number = first + int(original.name.partition("_")[0])
            os.link(original, block / f"{number:012d}_{original.name.partition('_')[2]}")
    (folder / END_OF_JOB_FILE).touch()
    return folder
