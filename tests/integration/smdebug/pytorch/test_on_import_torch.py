"""Tests of capture of unmodified PyTorch scripts, in separate processes."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from smdebug.pytorch import on_import_torch
from tests.unit.smdebug.scripts import START, RunScript, WriteConfig
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, torch
from torch.nn.functional import mse_loss
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
norm = torch.nn.BatchNorm1d(4, affine=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss()
with torch.no_grad():
    model(torch.zeros(1, 4))
for epoch in range(2):
    model.train()
    for _ in range(3):
        x, y = norm(torch.randn(5, 4)), torch.randint(0, 2, (5,))
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y) + mse_loss(output, torch.zeros(5, 2))
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        torch.nn.functional.cross_entropy(model(x), y)
sys.exit(3)
"""


# A new interpreter imports PyTorch after smdebug: by day end_to_end/test_pytorch.py has such a script.
@pytest.mark.parametrize("runner", ["run_torch_script", pytest.param("run_script", marks=pytest.mark.nightly)])
def test_an_untouched_script_is_captured(
    runner: str, request: pytest.FixtureRequest, run: WrittenRun, config: WriteConfig
) -> None:
    run_script: RunScript = request.getfixturevalue(runner)
    path = config(
        CollectionConfigurations=[{"CollectionName": "weights"}, {"CollectionName": "gradients"}],
        HookParameters={"train.save_interval": "2", "eval.save_interval": "1"},
    )
    done = run_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 3, done.stderr
    modes = [(run.index(step)["meta"]["mode"], run.index(step)["meta"]["mode_step"]) for step in run.steps]
    assert list(zip(run.steps, modes, strict=True)) == [
        (0, ("TRAIN", 0)),
        (2, ("TRAIN", 2)),
        (3, ("EVAL", 0)),
        (5, ("TRAIN", 4)),
        (7, ("EVAL", 1)),
    ]
    parameters = {"Sequential_0.weight", "Sequential_2.weight"}
    gradients = {f"gradient/Sequential_{name}" for name in ("0.weight", "0.bias", "2.weight", "2.bias")}
    losses = {"CrossEntropyLoss_output_0", "MSELoss_output_0"}
    assert set(run.values(0)) == parameters | gradients | losses
    assert set(run.values(3)) == parameters | {"CrossEntropyLoss_output_0"}
    assert run.has_ended


# The start-up file asks the same for each framework: by day test_on_import_xgboost.py has all three.
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="no config", marks=pytest.mark.nightly),
        pytest.param({"USE_SMDEBUG": "0"}, id="switched off"),
        pytest.param({"SMDEBUG_CONFIG_FILE_PATH": "/nowhere.json"}, id="config missing", marks=pytest.mark.nightly),
    ],
)
def test_nothing_happens(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig, environment: dict[str, str]
) -> None:
    path = config()
    if environment.get("USE_SMDEBUG"):
        environment = {**environment, "SMDEBUG_CONFIG_FILE_PATH": path}
    text = (
        START
        + "import sys\n"
        + SCRIPT.replace("sys.exit(3)", "print(sorted(m for m in sys.modules if 'smdebug.p' in m))")
    )
    done = run_torch_script(text, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert done.stderr == ""
    assert not run.path.exists()


def test_a_process_that_trains_nothing_leaves_no_trace(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    text = START + "import torch\ntorch.nn.Linear(2, 2).eval()(torch.zeros(1, 2))\nprint(torch.__file__)\n"
    done = run_torch_script(text, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == 0, done.stderr
    assert not run.path.exists()


UNSEEN = """
import torch
parameter = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)
for _ in range(2):
    parameter.sum().backward()
    optimizer.step()
"""


def test_layers_of_keras_are_left_to_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    class Layer(torch.nn.Linear):
        pass

    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(Layer=Layer))
    assert not on_import_torch._is_trained(Layer(2, 2))
    assert on_import_torch._is_trained(torch.nn.Linear(2, 2))
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace())
    assert on_import_torch._is_trained(Layer(2, 2))


def test_a_training_without_a_call_of_a_model_is_reported_once(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    done = run_torch_script(START + UNSEEN, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert "no model was called to be trained" in line
    assert not run.path.exists()


def test_a_config_that_cannot_be_read_costs_the_capture_only(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    path = config(HookParameters={"save_interval": "often"})
    done = run_torch_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 3, done.stderr
    assert "often" in done.stdout
    assert not run.path.exists()


def test_a_collection_that_selects_nothing_does_not_end_the_training(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    path = config(CollectionConfigurations=[{"CollectionName": "mine"}])
    done = run_torch_script(START + SCRIPT, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 3, done.stderr
    assert "collection mine" in done.stdout
    assert run.steps == [0, 3]


def test_a_script_with_a_hook_of_its_own_is_captured_once(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig, tmp_path: Path
) -> None:
    own = SCRIPT.replace(
        "optimizer = ",
        f"import smdebug.pytorch as smd\nhook = smd.Hook(out_dir={str(tmp_path / 'own')!r}, save_all=True)\n"
        "hook.register_module(model)\nmodel.kept = mse_loss\noptimizer = ",
    ).replace("sys.exit(3)", "import io\ntorch.save(model, io.BytesIO())\nsys.exit(3)")
    done = run_torch_script(START + own, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == 3, done.stderr
    assert not run.path.exists()
    index = json.loads((tmp_path / "own/index/000000000/000000000000_worker_0.json").read_text())
    assert index["meta"]["mode"] == "GLOBAL"


def test_a_script_that_only_asks_for_the_hook_leaves_its_model_to_it(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    asking = SCRIPT.replace(
        "optimizer.step()",
        "optimizer.step(); hook.save_scalar('mine', epoch)",
    ).replace(
        "optimizer = ", "import smdebug.pytorch as smd\nhook = smd.get_hook(create_if_not_exists=True)\noptimizer = "
    )
    # A loss that the script registers is saved once.
    asking = asking.replace("CrossEntropyLoss()\n", "CrossEntropyLoss()\nhook.register_loss(criterion)\n")
    done = run_torch_script(START + asking, SMDEBUG_CONFIG_FILE_PATH=config())
    assert done.returncode == 3, done.stderr
    assert set(run.values(0)) == {"scalar/mine", "CrossEntropyLoss_output_0", "MSELoss_output_0"}


WITH_PROCESSES = """
import subprocess, sys, torch
class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.model = torch.nn.Linear(4, 4)
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return self.model(torch.ones(4)).detach()
if __name__ == "__main__":
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="fork")
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
    del loader
    text = "import torch; m = torch.nn.Linear(2, 2); m(torch.ones(1, 2)).sum().backward()"
    if "child" in sys.argv:
        subprocess.run([sys.executable, "-c", START + text], check=True)
"""


@pytest.mark.parametrize("more", [[], pytest.param(["child"], marks=pytest.mark.nightly)], ids=["loaders", "children"])
def test_loaders_and_children_write_nothing(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig, more: list[str]
) -> None:
    path = config(
        CollectionConfigurations=[{"CollectionName": "weights", "CollectionParameters": {"save_interval": "1"}}]
    )
    done = run_torch_script(f"START = {START!r}\n{START}{WITH_PROCESSES}", *more, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 0, done.stderr
    assert run.steps == [0, 1, 2, 3]
    assert all(run.values(step)["Linear_weight"].shape == (2, 4) for step in run.steps)
    assert run.has_ended


FORKED = """
import multiprocessing, torch

def train():
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    model.eval()(torch.ones(1, 4))

child = multiprocessing.get_context("fork").Process(target=train)
child.start()
child.join()
"""


def test_a_forked_process_ends_its_last_step_and_its_run(
    run_torch_script: RunScript, run: WrittenRun, config: WriteConfig
) -> None:
    path = config(
        CollectionConfigurations=[{"CollectionName": "weights", "CollectionParameters": {"save_interval": "1"}}]
    )
    done = run_torch_script(START + FORKED, SMDEBUG_CONFIG_FILE_PATH=path)
    assert done.returncode == 0, done.stderr
    assert run.steps == [0, 1]
    assert run.has_ended


def test_importing_smdebug_imports_nothing_else(run_script: RunScript) -> None:
    text = (
        "import sys, threading\nbefore = set(sys.modules)\nimport smdebug\n"
        "added = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(added - sys.stdlib_module_names), threading.active_count())\n"
        "from smdebug import modes, SaveConfig\n"
        "print(modes.TRAIN.value, 'numpy' in sys.modules, 'torch' in sys.modules)"
    )
    done = run_script(text)
    assert done.stdout == "['smdebug'] 1\n1 False False\n", done.stdout + done.stderr
