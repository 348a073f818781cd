"""Tests of our smdebug under Keras 2, beside the real 1.0.34.

In the environment of the image of 2.12. That of 2.15 is twice as much to install: `pytest -m versions` runs it.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.shared.environments import build_packages
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment
from smdebug import modes
from smdebug.trials import create_trial
from tests.interop.scripts_for_keras_2 import BOTH, ESTIMATORS, EXPLICIT, FIT, KINDS, TRAIN

ORIGINAL = Path(__file__).with_name("requirements-upstream-alone.txt")
# TensorFlow is slow to import where the machine is busy, and the first test installs it.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]
SAYS_NOTHING_WAS_ASKED = "\nimport sys; print(sorted(name for name in sys.modules if name.startswith('smdebug')))"

LOOP = """
import sys, tensorflow as tf
import smdebug.tensorflow as smd
hook = smd.KerasHook(sys.argv[1], save_all=True, save_config=smd.SaveConfig(save_interval=1))
kernel = tf.Variable([[1.0], [2.0]], name="kernel")
optimizer = hook.wrap_optimizer(tf.keras.optimizers.Adam(0.1))
def step(x):
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean((x @ kernel) ** 2)
    gradients = tape.gradient(loss, [kernel])
    optimizer.apply_gradients(zip(gradients, [kernel]))
compiled = tf.function(step)
step(tf.ones((3, 2)))
compiled(tf.ones((3, 2)))
"""


@pytest.fixture(scope="module", params=["2.12", pytest.param("2.15", marks=pytest.mark.versions)])
def old_python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of the image for a version; our smdebug is installed there, as in a training job."""
    name = f"tensorflow-training-{request.param}"
    return build_environment(next(found for found in ImageCatalogue() if found.name == name), compiled=False).python


@pytest.fixture(scope="module")
def run_old(
    old_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs text as a script under an old TensorFlow."""
    folder = tmp_path_factory.mktemp("scripts")

    def run(text: str, *arguments: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
        (folder / "script.py").write_text(text)
        return subprocess.run(
            [str(old_python), str(folder / "script.py"), *map(str, arguments)],
            env={"PATH": os.defpath, "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    return run


def list_said(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in (done.stdout + done.stderr).splitlines() if " WARNING " in line or " ERROR " in line]


@pytest.fixture(scope="module")
def shown_without_a_hook(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("bare") / "shown.npz"
    done = run_old(FIT + TRAIN, path)
    assert done.returncode == 3, done.stderr
    return dict(np.load(path))


@pytest.mark.parametrize("way", ["untouched", "explicit"])
def test_fit_runs_as_without_a_hook_and_shows_what_callbacks_can(
    run_old: Callable[..., subprocess.CompletedProcess[str]],
    shown_without_a_hook: dict[str, np.ndarray],
    tmp_path: Path,
    way: str,
) -> None:
    run, shown = tmp_path / "run", tmp_path / "shown.npz"
    if way == "untouched":
        config = tmp_path / "debughookconfig.json"
        asked = [{"CollectionName": name} for name in ("weights", "gradients", "optimizer_variables")]
        hook_parameters = {"save_interval": "1"}
        config.write_text(
            json.dumps({"LocalPath": str(run), "CollectionConfigurations": asked, "HookParameters": hook_parameters})
        )
        done = run_old(FIT + TRAIN, shown, SMDEBUG_CONFIG_FILE_PATH=str(config))
    else:
        done = run_old(FIT + EXPLICIT + TRAIN, shown, run)
    assert done.returncode == 3, done.stderr
    assert not list_said(done)

    found = dict(np.load(shown))
    assert found.keys() == shown_without_a_hook.keys()
    for name, value in shown_without_a_hook.items():
        np.testing.assert_array_equal(found[name], value)

    trial = create_trial(str(run))
    # Twice three batches of training and two of validation, and one of predictions.
    assert trial.steps() == list(range(11))
    for count, step in enumerate((0, 1, 2, 5, 6, 7)):
        np.testing.assert_array_equal(trial.tensor("a/weights/a/kernel:0").value(step), found[f"kernel{count}"])
        assert trial.tensor("loss").value(step).item() == pytest.approx(found[f"loss{count}"].item())
    names = set(trial.tensor_names())
    assert {"mae", "val_loss", "val_mae", "b/weights/b/kernel:0", "Adam/a/kernel/m:0", "Adam/iter:0"} <= names
    # Adam's first momentum is a tenth of the first gradient.
    gradient, momentum = trial.tensor("gradients/a/kernelGrad"), trial.tensor("Adam/a/kernel/m:0")
    assert gradient.steps(mode=modes.TRAIN) == list(range(6))
    np.testing.assert_allclose(0.1 * gradient.value(0), momentum.value(0), rtol=1e-4, atol=1e-8)
    if way == "explicit":
        for mode, count in ((modes.TRAIN, 6), (modes.EVAL, 4), (modes.PREDICT, 1)):
            assert len(trial.tensor("predictions").steps(mode=mode)) == len(trial.steps(mode=mode)) == count
        np.testing.assert_array_equal(trial.tensor("predictions").value(10), found["predicted"])
        hidden = trial.tensor("a/outputs").value(0)
        assert hidden.shape == (8, 3)
        np.testing.assert_array_equal(trial.tensor("b/inputs").value(0), hidden)


def test_every_kind_of_training_is_the_same_with_a_hook(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = run_old(KINDS, tmp_path)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    kinds = {name.partition(" ")[0] for name in results}
    for kind in kinds:
        assert results[f"{kind} hook"] == results[f"{kind} bare"], kind
        trial = create_trial(str(tmp_path / kind))
        assert len(trial.steps(mode=modes.TRAIN)) == (4 if kind == "executions" else 6), kind
        assert len(trial.tensor_names(collection="gradients")) == 4, kind
        assert trial.tensor("inputs").value(0).shape == (8, 4), kind
        if kind in ("eager", "xla", "branching", "mirrored", "scaled"):
            # By plain descent of a tenth: what has left is what the gradient says. Of replicas, their sum.
            name = next(name for name in trial.tensor_names() if name.endswith("a/kernel:0") and "weights/" in name)
            before, after = (trial.tensor(name).value(step) for step in (0, 1))
            gradient = trial.tensor(next(n for n in trial.tensor_names() if n.endswith("a/kernelGrad"))).value(1)
            np.testing.assert_allclose(before - after, 0.1 * gradient, rtol=1e-3, atol=1e-6, err_msg=kind)


@pytest.mark.parametrize("way", ["tape", "estimator"])
def test_upstream_names_and_writes_the_same(
    run_old: Callable[..., subprocess.CompletedProcess[str]], old_python: Path, tmp_path: Path, way: str
) -> None:
    packages = build_packages(ORIGINAL, old_python)
    for whose, environment in (("ours", {}), ("original", {"PYTHONPATH": str(packages)})):
        done = run_old(BOTH, tmp_path / whose, way, **environment)
        if whose == "original" and way == "tape" and "training-2.15" in str(old_python):
            # It looks for a class that this TensorFlow has moved, and fails: there is nothing to compare with.
            assert "has no attribute 'AggregatingVariable'" in done.stderr
            return
        assert done.returncode == 0, done.stderr
    ours, original = (create_trial(str(tmp_path / whose)) for whose in ("ours", "original"))
    # Of optimizers upstream lists settings, and no variables; of a graph, whatever lies below `gradients/`.
    shown = ("weights", "biases", "gradients", "losses")
    compared = {name for collection in shown for name in ours.tensor_names(collection=collection)}
    compared = {name for name in compared if not name.startswith("SGD/")}
    assert compared <= set(original.tensor_names())
    assert len(compared) >= 9
    # By mode: a run that finds no more data is a step of ours, though it saves nothing, and none of upstream's.
    for mode in original.modes():
        assert ours.steps(mode=mode) == original.steps(mode=mode)
        for name in compared:
            for step in set(original.tensor(name).steps(mode=mode)) & set(ours.tensor(name).steps(mode=mode)):
                theirs = original.tensor(name).value(step, mode=mode)
                mine = ours.tensor(name).value(step, mode=mode).reshape(theirs.shape)
                np.testing.assert_array_equal(mine, theirs, err_msg=name)


def test_an_untouched_estimator_is_captured(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    config = tmp_path / "debughookconfig.json"
    asked = [{"CollectionName": name} for name in ("weights", "gradients", "optimizer_variables")]
    run = {"LocalPath": str(tmp_path / "run"), "CollectionConfigurations": asked}
    config.write_text(json.dumps({**run, "HookParameters": {"save_interval": "1"}}))
    done = run_old(ESTIMATORS, tmp_path, "untouched", SMDEBUG_CONFIG_FILE_PATH=str(config))
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(tmp_path / "run"))
    assert [len(trial.steps(mode=mode)) for mode in (modes.TRAIN, modes.EVAL)] == [4, 2]
    assert trial.steps(mode=modes.PREDICT)
    # Those of a legacy optimizer of Keras, found in the graph.
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 2
    shapes = {trial.tensor(name).value(0).shape: trial.tensor(name).value(0) for name in gradients}
    momentum = trial.tensor("Adam/d/kernel/m:0").value(1) - 0.9 * trial.tensor("Adam/d/kernel/m:0").value(0)
    assert shapes[4, 1].shape == momentum.shape
    assert trial.tensor("mean_squared_error/value:0").steps(mode=modes.TRAIN) == [0, 1, 2, 3]


@pytest.mark.parametrize("way", ["both", "mirrored"])
def test_an_estimator_hook_knows_what_the_estimator_does(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, way: str
) -> None:
    done = run_old(ESTIMATORS, tmp_path / "run", way)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(tmp_path / "run"))
    trained = trial.tensor("d/kernel:0").steps(mode=modes.TRAIN)
    # An evaluation after steps 3 and 6 takes nothing from them.
    assert trained == list(range(6 if way == "both" else 4))
    assert len(trial.steps(mode=modes.EVAL)) == (4 if way == "both" else 2)
    gradients = trial.tensor_names(collection="gradients")
    for name in gradients:
        assert trial.tensor(name).steps(mode=modes.TRAIN) == trained
    kernel, momentum = trial.tensor("d/kernel:0"), trial.tensor("d/kernel/Momentum:0")
    # A session shows variables as a step finds or leaves them, all of one step alike.
    moved = np.abs(kernel.value(trained[2], mode=modes.TRAIN) - kernel.value(trained[1], mode=modes.TRAIN))
    assert moved.max() > 0
    assert momentum.value(trained[-1], mode=modes.TRAIN).any()


def test_tapes_and_optimizers_of_a_loop_are_captured(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = run_old(LOOP, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert list_said(done) == []
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1]
    for step in trial.steps():
        kernel, gradient = (trial.tensor(name).value(step) for name in ("weights/kernel:0", "gradients/kernelGrad"))
        # Of the mean of (a + b) ** 2, eagerly and compiled.
        np.testing.assert_allclose(gradient, np.full((2, 1), 2 * kernel.sum()), rtol=1e-6)
    assert "Adam/m/kernel:0" in trial.tensor_names()


def test_without_a_config_nothing_of_smdebug_is_imported(
    run_old: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_old("import tensorflow" + SAYS_NOTHING_WAS_ASKED)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
