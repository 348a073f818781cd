"""Hooks that end with their test, a small model, and a look into the files that were written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import smdebug.pytorch as smd
from smdebug.core.tfevent import decode_event, read_record

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).parents[4]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = torch.nn.Linear(4, 3)
        self.act = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Run:
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


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SMDEBUG_CONFIG_FILE_PATH", "CHECKPOINT_CONFIG_FILE_PATH", "USE_SMDEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run")


@pytest.fixture
def make_hook(run):
    hooks = []

    def make(**arguments):
        arguments.setdefault("save_config", smd.SaveConfig(save_interval=1))
        hook = smd.Hook(out_dir=str(run.path), **arguments)
        hooks.append(hook)
        return hook

    yield make
    for hook in hooks:
        hook.close()
    smd.del_hook()


class Training:
    def __init__(self, model=None, loss=None) -> None:
        torch.manual_seed(0)
        self.model = model or Net()
        self.loss = loss or torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def batch(self):
        return torch.randn(5, 4), torch.randint(0, 2, (5,))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            x, y = self.batch()
            self.optimizer.zero_grad()
            self.loss(self.model(x), y).backward()
            self.optimizer.step()


@pytest.fixture
def training():
    return Training()


@pytest.fixture
def run_script(tmp_path):
    """Runs text as a script of its own process, smdebug importable."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(text)
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start
