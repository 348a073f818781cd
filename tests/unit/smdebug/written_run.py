"""Access to the files of a run that a hook wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from smdebug.format.tfevent.decoding import decode_event
from smdebug.format.tfevent.framing import read_record

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np


class WrittenRun:
    """The files of a run, read without any of the reading side."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def index(self, step: int, worker: str = "worker_0") -> dict[str, Any]:
        return json.loads((self.path / f"index/{step // 1000:09d}/{step:012d}_{worker}.json").read_text())

    @property
    def steps(self) -> list[int]:
        return sorted(int(path.name.split("_")[0]) for path in self.path.glob("index/*/*.json"))

    def values(self, step: int, worker: str = "worker_0") -> dict[str, np.ndarray]:
        index = self.index(step, worker)
        data = (self.path / index["meta"]["event_file_name"]).read_bytes()
        found = {}
        for entry in index["tensor_payload"]:
            payload, end = read_record(data, entry["start_idx"])
            assert end == entry["start_idx"] + entry["length"]
            (value,) = decode_event(payload).values
            assert value.tag == entry["tensorname"]
            assert value.tensor is not None
            found[value.tag] = value.tensor
        return found

    def collections(self, worker: str = "worker_0") -> dict[str, Any]:
        return json.loads((self.path / f"collections/000000000/{worker}_collections.json").read_text())

    @property
    def has_ended(self) -> bool:
        return (self.path / "training_job_end.ts").exists()

    @property
    def temp_files(self) -> list[Path]:
        return list(self.path.rglob("*.tmp"))
