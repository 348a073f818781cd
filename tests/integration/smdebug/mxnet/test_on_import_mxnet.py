"""Tests of capture of unmodified MXNet scripts, in separate processes.

The processes are started as a job starts them.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smdebug import modes
from smdebug.trials import create_trial
from tests.unit.smdebug.scripts import START, ForkingInterpreter, RunScript

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

SCRIPT = """
import sys
import mxnet as mx
from mxnet import autograd, gluon, nd

mx.random.seed(0)
network = gluon.nn.HybridSequential()
network.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.Dense(2))
network.initialize()
loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
x, y = nd.ones((5, 3)), nd.array([0, 1, 0, 1, 1])
network.hybridize()
network(x)
BEFORE
for step in range(4):
    with autograd.record():
        loss = loss_function(network(x), y)
    loss.backward()
    trainer.step(5)
    INSIDE
network(x)
sys.stdout.write(repr(loss.asnumpy().tolist()))
"""
ALL = {"HookParameters": {"save_interval": "2", "save_all": "true"}}
Capture = Callable[..., tuple[subprocess.CompletedProcess[str], Path]]


@pytest.fixture(scope="module")
def interpreter(mxnet_python: Path) -> Iterator[ForkingInterpreter]:
    interpreter = ForkingInterpreter("mxnet", "mxnet.gluon", python=str(mxnet_python), OMP_NUM_THREADS="1")
    yield interpreter
    interpreter.close()


@pytest.fixture
def capture(interpreter: ForkingInterpreter, tmp_path: Path) -> Capture:
    """Runs the script in an interpreter that has imported MXNet, and returns (process, folder of its run)."""
    return build_capture(interpreter.build_script_runner(tmp_path), tmp_path, START)


@pytest.fixture
def capture_anew(run_script: RunScript, tmp_path: Path) -> Capture:
    """Runs the script with an `autoload` as the image's Python does it, and returns (process, folder of its run)."""
    return build_capture(run_script, tmp_path)


def build_capture(run_script: RunScript, tmp_path: Path, first: str = "") -> Capture:
    def start(
        before: str = "", inside: str = "", config: dict[str, Any] | None = ALL, **environment: str
    ) -> tuple[subprocess.CompletedProcess[str], Path]:
        path = tmp_path / "debughookconfig.json"
        if config is not None:
            path.write_text(json.dumps({"LocalPath": str(tmp_path / "run"), **config}))
        text = first + SCRIPT.replace("BEFORE", before).replace("    INSIDE", f"    {inside}" if inside else "")
        return run_script(text, SMDEBUG_CONFIG_FILE_PATH=str(path), **environment), tmp_path / "run"

    return start


def test_an_untouched_script_is_captured(capture_anew: Capture) -> None:
    ran, run = capture_anew(config={"HookParameters": {"save_all": "true", "train.save_interval": "3"}})
    assert ran.returncode == 0, ran.stderr
    trial = create_trial(str(run))
    assert trial.steps() == [0, 3, 4]
    assert trial.steps(mode=modes.TRAIN) == [0, 3]
    assert trial.steps(mode=modes.EVAL) == [0]
    assert {"dense0_relu_output_0", "gradient/dense1_bias", "hybridsequential0_input_0"} <= set(trial.tensor_names())
    assert trial.tensor_names(collection="losses") == ["softmaxcrossentropyloss0_output_0"]
    assert not any("gradient" in name for name in trial.tensor_names(step=4))
    assert "Capturing hybridsequential0" in ran.stdout
    printed = json.loads(ran.stdout[ran.stdout.rindex("[") :])
    assert trial.tensor("softmaxcrossentropyloss0_output_0").value(3).tolist() == printed
    assert ran.stderr == ""


ESTIMATOR = """
import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon.contrib.estimator import Estimator

network = gluon.nn.HybridSequential()
network.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dropout(0.2), gluon.nn.Dense(3))
network.initialize()
network.hybridize()
images, labels = np.random.rand(32, 5).astype("float32"), np.arange(32) % 3
batches = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), batch_size=16, num_workers=2)
trainer = gluon.Trainer(network.collect_params(), "adam")
estimator = Estimator(network, gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy(), trainer=trainer)
estimator.fit(batches, val_data=batches, epochs=2)
"""


def test_a_gluon_estimator_with_processes_that_load_its_data(interpreter: ForkingInterpreter, tmp_path: Path) -> None:
    run_script = interpreter.build_script_runner(tmp_path)
    config = tmp_path / "debughookconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "run"), **ALL, "HookParameters": {"save_interval": "1"}}))
    ran = run_script(START + ESTIMATOR, SMDEBUG_CONFIG_FILE_PATH=str(config))
    assert ran.returncode == 0, ran.stderr
    trial = create_trial(str(tmp_path / "run"))
    assert [trial.mode(step) for step in trial.steps()] == 2 * [modes.TRAIN, modes.TRAIN, modes.EVAL, modes.EVAL]
    assert trial.tensor_names() == ["softmaxcrossentropyloss0_output_0"]


@pytest.mark.parametrize(
    ("config", "environment"), [(ALL, {"USE_SMDEBUG": "0"}), (None, {})], ids=["turned off", "no config"]
)
def test_nothing_is_captured(capture: Capture, config: dict[str, Any] | None, environment: dict[str, str]) -> None:
    ran, run = capture("assert 'smdebug.capture' not in sys.modules", config=config, **environment)
    assert ran.returncode == 0, ran.stderr
    assert not run.exists()


def test_a_hook_of_the_script_takes_over(capture: Capture, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    before = f"import smdebug.mxnet as smd; hook = smd.Hook({own!r}, save_all=True); hook.register_block(network)"
    ran, run = capture(before)
    assert ran.returncode == 0, ran.stderr
    assert not run.exists()
    trial = create_trial(own)
    assert trial.steps() == [0]
    assert trial.mode(0) == modes.GLOBAL
    assert not [name for name in trial.tensor_names() if "loss" in name], "it registers its losses itself"


def test_a_hook_that_the_script_makes_while_it_trains(capture: Capture, tmp_path: Path) -> None:
    inside = f"if step == 1: import smdebug.mxnet as smd; hook = smd.Hook({str(tmp_path / 'own')!r})"
    ran, run = capture(inside=inside, config={"HookParameters": {"save_interval": "1"}})
    assert ran.returncode == 0, ran.stderr
    assert (run / "training_job_end.ts").exists()
    # It is noticed when the loss of the step after is called.
    assert create_trial(str(run)).steps() == [0, 1]


def test_a_script_may_ask_for_the_hook_that_it_did_not_make(capture: Capture) -> None:
    inside = "import smdebug.mxnet as smd; smd.get_hook().save_scalar('mine', step)"
    ran, run = capture(inside=inside, config={"HookParameters": {"save_interval": "1"}})
    assert ran.returncode == 0, ran.stderr
    trial = create_trial(str(run))
    assert [trial.tensor("scalar/mine").value(step).tolist() for step in range(4)] == [[0], [1], [2], [3]]


def test_losses_created_in_every_step_do_not_pile_up(capture: Capture) -> None:
    inside = "[gluon.loss.L2Loss()(x, x) for _ in range(40)]"
    ran, run = capture(inside=inside, config={"HookParameters": {"save_interval": "1"}})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("each a new object") == 1
    assert create_trial(str(run)).steps() == [0, 1, 2, 3]


def test_a_config_that_cannot_be_read_does_not_stop_the_training(capture: Capture) -> None:
    ran, run = capture(config={"HookParameters": {"save_interval": "often"}})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Not saved: everything") == 1
    assert not run.exists()


@pytest.mark.parametrize(
    ("inside", "code"),
    [("if step == 2: raise KeyError('a bug')", 1), ("import os; step == 2 and os._exit(7)", 7)],
    ids=["raises", "os._exit"],
)
def test_a_script_that_ends_early_leaves_every_finished_step(capture: Capture, inside: str, code: int) -> None:
    ran, run = capture(inside=inside)
    assert ran.returncode == code
    steps = sorted(path.name for path in run.glob("index/*/*.json"))
    assert steps == [f"{step:012d}_worker_0.json" for step in (0, 2)]
    assert (run / "collections/000000000/worker_0_collections.json").exists()
    assert (run / "training_job_end.ts").exists() == (code == 1)
