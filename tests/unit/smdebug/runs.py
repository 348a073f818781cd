"""Generated runs, written step by step as hooks write them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.mode_keys import ModeKeys
from smdebug.storage.output import write_whole_file
from smdebug.writing.file_writer import FileWriter

REGEXES = {
    "weights": "^(?!gradient).*weight",
    "gradients": "^gradient",
    "losses": "[Ll]oss",
    "all": None,
    "default": None,
}


class RunMaker:
    """Writes a run into a folder or under an s3:// prefix."""

    def __init__(self, out_dir: Path | str, workers: int = 1, *, with_collections: bool = True) -> None:
        self.out_dir = str(out_dir)
        self.workers = [f"worker_{rank}" for rank in range(workers)]
        if with_collections:
            self.write_collections()

    def write_collections(self, names: Mapping[str, set[str]] | None = None) -> None:
        manager = CollectionManager()
        for name, regex in REGEXES.items():
            manager.add(Collection(name, include_regex=regex, tensor_names=(names or {}).get(name)))
        for name in set(names or {}) - set(REGEXES):
            manager.add(Collection(name, tensor_names=(names or {})[name]))
        manager.set_num_workers(len(self.workers))
        for worker in self.workers:
            manager.export(self.out_dir, f"{worker}_collections.json")

    def write_step(
        self,
        step: int,
        tensors: Mapping[str, Any],
        mode: ModeKeys = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        worker: str = "worker_0",
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        with FileWriter(self.out_dir, worker, step, mode=mode) as writer:
            for name, value in tensors.items():
                writer.write_tensor(value, name, mode=mode, mode_step=mode_step)
            for name, shape in (shapes or {}).items():
                writer.write_shape(name, shape, mode=mode, mode_step=mode_step)

    def write_steps(self, name: str, values: Mapping[int, Any], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        for step, value in values.items():
            self.write_step(step, {name: value}, mode, step)

    def end(self) -> None:
        write_whole_file(f"{self.out_dir}/{END_OF_JOB_FILE}", [])
