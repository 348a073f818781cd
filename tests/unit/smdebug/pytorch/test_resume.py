"""Tests of a restarted job's step count, continued beside its checkpoints."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import smdebug.pytorch as smd
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    config = tmp_path / "checkpointconfig.json"
    folder = tmp_path / "checkpoints"
    config.write_text(json.dumps({"LocalPath": str(folder)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    return folder


def states(folder: Any) -> Any:
    return json.loads((folder / "metadata.json").read_text())


def test_upstreams_state_is_gone_on_from(
    recorded_runs: Path, checkpoints: Path, make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    shutil.copytree(recorded_runs / "resume_first" / "ckpt", checkpoints)
    last = max(states(checkpoints), key=lambda state: state["latest-global-step-seen"])
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    hook.set_mode(smd.modes.TRAIN)
    assert hook.last_saved_step == last["latest-global-step-saved"]
    training.step()
    first = last["latest-global-step-seen"] + 1
    assert run.steps == [first]
    assert run.index(first)["meta"]["mode_step"] == last["latest-mode-step"]["TRAIN"] + 1
    # A mode that the first run did not know counts on from the global step.
    hook.set_mode(smd.modes.EVAL)
    training.step()
    assert run.index(first + 1)["meta"]["mode_step"] == first


def test_each_new_checkpoint_leaves_a_state_and_a_third_run_continues_from_it(
    checkpoints: Path, make_hook: MakeHook, training: Training
) -> None:
    for restart in range(3):
        hook = make_hook(include_collections=["weights"])
        hook.register_module(training.model)
        for step in range(2):
            training.step()
            checkpoints.mkdir(exist_ok=True)
            torch.save(training.model.state_dict(), checkpoints / f"model-{restart}-{step}.pt")
        # The state is written when the next step begins.
        training.step()
        assert hook.step == 3 * restart + 2 - restart
        counters: Any = hook.recorder.counters
        counters._store = None
    kept = states(checkpoints)
    assert [state["training-run"] for state in kept] == [0, 0, 1, 1, 2, 2]
    seen = [state["latest-global-step-seen"] for state in kept]
    assert seen == sorted(set(seen))
    assert list(kept[0]) == ["training-run", "latest-global-step-saved", "latest-global-step-seen", "latest-mode-step"]


def test_a_state_that_cannot_be_written_costs_no_step(
    checkpoints: Path, make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    (checkpoints / "metadata.json").mkdir(parents=True)
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    for step in range(4):
        training.step()
        torch.save(training.model.state_dict(), checkpoints / f"model-{step}.pt")
    assert run.steps == [0, 1, 2, 3]
    assert "metadata.json cannot be written" in said.text
    assert not list(checkpoints.glob("metadata.json.*")), "nothing under a temporary name is left"


def test_processes_that_write_a_state_at_once_do_not_disturb_each_other(checkpoints: Path) -> None:
    code = "from smdebug.capture.state_store import StateStore; store = StateStore()\n"
    code += "state = {'training-run': 0, 'latest-global-step-saved': None, 'latest-mode-step': {}}\n"
    code += "for step in range(200): store.update_state({**state, 'latest-global-step-seen': step})"
    checkpoints.mkdir()
    started = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in started:
        assert process.communicate()[1] == ""
        assert process.returncode == 0
    assert states(checkpoints)[-1]["latest-global-step-seen"] == 199
    assert [path.name for path in checkpoints.iterdir()] == ["metadata.json"]


def test_what_the_agent_leaves_beside_checkpoints_is_not_a_checkpoint(
    checkpoints: Path, make_hook: MakeHook, training: Training
) -> None:
    checkpoints.mkdir()
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    (checkpoints / "model.pt.sagemaker-uploaded").touch()
    (checkpoints / "metadata.json.sagemaker-uploaded").touch()
    training.step()
    assert not (checkpoints / "metadata.json").exists()
