"""Tests of a profiled PyTorch training: passes, data loading, Python, torch."""

import json
import pstats
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from smdebug.pytorch import Hook
from smdebug.rules.profiling.builtin.dataloader import count_at_once
from smdebug.tracing import step_tracer

PARAMETERS = {
    "DetailedProfilingConfig": "{'StartStep': 2, 'NumSteps': 1, }",
    "DataloaderProfilingConfig": "{'StartStep': 1, 'NumSteps': 2, }",
    "PythonProfilingConfig": "{'StartStep': 3, 'NumSteps': 1, 'ProfilerName': 'cprofile', }",
}


class Training:
    """Trains steps of a small model in a job whose profiler configuration it can change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "profilerconfig.json"
        (folder / "resourceconfig.json").write_text('{"current_host": "algo_1"}')
        self.hook: Any = None

    def configure(self, parameters: dict[str, str] | None) -> None:
        told = {} if parameters is None else {"LocalPath": str(self.folder / "profiler"), **parameters}
        self.config.write_text(json.dumps({"ProfilingParameters": told}))

    def start(self) -> None:
        self.hook = Hook(out_dir=str(self.folder / "out"))
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        self.hook.register_module(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, steps: int, workers: int = 0) -> None:
        data = torch.utils.data.TensorDataset(torch.randn(steps, 4), torch.zeros(steps, dtype=torch.long))
        for inputs, labels in torch.utils.data.DataLoader(data, num_workers=workers):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(inputs), labels).backward()
            self.optimizer.step()

    def read_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Each event with its phase."""
        found = []
        for path in sorted(self.folder.rglob("pevents/*/*.json")):
            events = json.loads(path.read_text())
            phases = {each["pid"]: each["args"]["name"] for each in events if "name" in each["args"]}
            found += [(phases[each["pid"]], each) for each in events if each["ph"] == "X"]
        return found


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Training:
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(tmp_path / "profilerconfig.json"))
    # Each step looks whether the configuration is another one.
    monkeypatch.setattr(step_tracer, "_POLL_SECONDS", 0.0)
    return Training(tmp_path)


def test_what_is_traced_of_a_training(training: Training) -> None:
    training.configure(PARAMETERS)
    written = torch.utils.data.dataloader._BaseDataLoaderIter.__next__
    training.start()
    training.train(6, workers=1)
    training.hook.close()
    assert torch.utils.data.dataloader._BaseDataLoaderIter.__next__ is written
    events = training.read_events()
    counts = Counter(phase for phase, _ in events)
    assert {phase: counts[phase] for phase in ("Step:ModeKeys.GLOBAL", "Forward", "Backward(post-forward)")} == {
        "Step:ModeKeys.GLOBAL": 6,
        "Forward": 6,
        "Backward(post-forward)": 6,
    }
    # Of two batches: steps 1 and 2 waited for the next one.
    assert (counts["DataLoaderIter"], counts["DataLoaderWorker"]) == (2, 1)
    names = {event["name"] for phase, event in events if phase == "cpu_functions"}
    assert any("addmm" in name or "linear" in name for name in names), names
    steps = [event for phase, event in events if phase == "Step:ModeKeys.GLOBAL"]
    assert [event["args"]["step_num"] for event in steps] == list("012345")
    for phase in ("Forward", "Backward(post-forward)"):
        for step, part in zip(steps, [event for each, event in events if each == phase], strict=True):
            assert part["name"] == "Sequential"
            assert step["ts"] <= part["ts"]
            assert part["ts"] + part["dur"] <= step["ts"] + step["dur"]
    (node,) = {path.name.split("_", 1)[1] for path in training.folder.rglob("pevents/*/*.json")}
    assert node.endswith("-algo-1_pythontimeline.json")
    profiles = sorted(training.folder.rglob("cprofile/*/*/python_stats"))
    points = [[part.rsplit("-", 1)[0] for part in path.parent.name.split("_")] for path in profiles]
    assert sorted(points) == [
        ["global-3-forwardpassend", "global-4-stepstart"],
        ["global-3-stepstart", "global-3-forwardpassend"],
    ]
    ran: Any = pstats.Stats(str(profiles[0]))
    assert ran.total_calls > 0


@pytest.mark.slow
def test_loading_processes_end_with_their_epoch(training: Training) -> None:
    training.configure({"DataloaderProfilingConfig": "{'StartStep': 0, 'NumSteps': 100}"})
    shut_down = torch.utils.data.dataloader._MultiProcessingDataLoaderIter._shutdown_workers
    training.start()
    for _ in range(3):
        training.train(2, workers=2)
    training.hook.close()
    assert torch.utils.data.dataloader._MultiProcessingDataLoaderIter._shutdown_workers is shut_down
    workers = [event for phase, event in training.read_events() if phase == "DataLoaderWorker"]
    assert len({event["args"]["worker_pid"] for event in workers}) == 6
    assert count_at_once((event["ts"], event["ts"] + event["dur"]) for event in workers) == 2


def test_python_is_profiled_by_pyinstrument_too(training: Training) -> None:
    training.configure({"PythonProfilingConfig": "{'StartStep': 1, 'NumSteps': 1, 'ProfilerName': 'pyinstrument'}"})
    training.start()

    def work(*_: Any) -> None:
        # It looks every millisecond.
        torch.linalg.svdvals(torch.randn(200, 200))

    training.model[0].register_forward_pre_hook(work)
    training.train(3)
    training.hook.close()
    folders = sorted(training.folder.rglob("pytorch/pyinstrument/*/*"))
    points = [[part.rsplit("-", 1)[0] for part in folder.name.split("_")] for folder in folders]
    assert sorted(points) == [
        ["global-1-forwardpassend", "global-2-stepstart"],
        ["global-1-stepstart", "global-1-forwardpassend"],
    ]
    for folder in folders:
        stats = json.loads((folder / "python_stats.json").read_text())
        assert stats["duration"] > 0
        # A backward pass of so small a model is over before it has looked once.
        assert stats["root_frame"] is not None or "forwardpassend" in folder.name.partition("_")[0]
        assert "<html" in (folder / "python_stats.html").read_text()


def test_tracing_begins_changes_and_ends_while_the_job_runs(training: Training) -> None:
    training.start()
    training.train(2)
    assert training.hook.tracer.config is None
    training.configure({"FileOpenFailThreshold": "50"})
    training.train(3)
    training.hook.record_trace_events(timestamp=1.0, training_phase="Mine", op_name="mark", duration=2, batch=7)
    training.configure(None)
    training.train(2)
    training.hook.record_trace_events(timestamp=1.0, training_phase="Mine", op_name="too late", duration=2)
    training.hook.close()
    events = training.read_events()
    assert [event["args"]["step_num"] for phase, event in events if phase.startswith("Step:")] == ["2", "3", "4"]
    assert [(event["name"], event["dur"], event["args"]) for phase, event in events if phase == "Mine"] == [
        ("mark", 2_000_000, {"step_num": "4", "batch": 7})
    ]
    assert not list(training.folder.rglob("*.tmp"))
    assert not _global_optimizer_pre_hooks


def test_a_hook_outside_of_a_job_traces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMPROFILER_CONFIG_PATH", raising=False)
    training = Training(tmp_path)
    training.start()
    assert training.hook.tracer is None
    training.hook.record_trace_events(timestamp=1.0, training_phase="Mine", op_name="mark")
    assert training.hook.should_save_dataloader_metrics("any") is False
    training.hook.close()


def test_a_place_that_cannot_be_written_costs_the_training_nothing(
    training: Training, said: pytest.LogCaptureFixture
) -> None:
    (training.folder / "profiler").write_text("a file, where the folder should be")
    training.configure(PARAMETERS)
    training.start()
    training.train(6)
    training.hook.close()
    assert "Training goes on" in said.text
    assert training.hook.step == 5
