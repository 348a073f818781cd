"""Our smdebug under TensorFlow 2.12, whose Keras is Keras 2: nothing breaks, and what is not captured is said once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import smdebug
from benchmarks._environments import build_environment
from smdebug.trials import create_trial

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
# What a .pth file in site-packages does when Python starts.
START = f"exec({Path(smdebug.__file__).with_name('autoload.pth').read_text()!r})\n"
SAYS_NOTHING_WAS_ASKED = "\nimport sys; print(sorted(name for name in sys.modules if name.startswith('smdebug')))"

FIT = """
import sys
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
x, y = generator.random((24, 4), np.float32), generator.random((24, 2), np.float32)
# It has no weights before its first batch.
model = tf.keras.Sequential([tf.keras.layers.Dense(3, name="a"), tf.keras.layers.Dense(2, name="b")])
model.compile(tf.keras.optimizers.legacy.Adam(0.01), "mse", metrics=["mae"])
callbacks = []
"""
EXPLICIT = """
import smdebug.tensorflow as smd
callbacks.append(smd.KerasHook(sys.argv[2], save_all=True, save_config=smd.SaveConfig(save_interval=1)))
"""
TRAIN = """
class Recorder(tf.keras.callbacks.Callback):
    shown = {}
    def on_train_batch_end(self, batch, logs=None):
        count = len(self.shown) // 2
        self.shown[f"loss{count}"] = logs["loss"]
        self.shown[f"kernel{count}"] = self.model.layers[0].kernel.numpy()
for _ in range(2):
    model.fit(x, y, batch_size=8, validation_data=(x, y), validation_batch_size=12, verbose=0, shuffle=False,
              callbacks=[*callbacks, Recorder()])
np.savez(sys.argv[1], **Recorder.shown)
sys.exit(3)
"""
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


@pytest.fixture(scope="module")
def run_old(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs text as a script under TensorFlow 2.12, our smdebug importable."""
    python = build_environment("tensorflow-2.12", Path(__file__).with_name("requirements-tensorflow-2.12.txt"))
    folder = tmp_path_factory.mktemp("scripts")

    def run(text: str, *arguments: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        (folder / "script.py").write_text(text)
        return subprocess.run(
            [str(python), str(folder / "script.py"), *map(str, arguments)],
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
            capture_output=True,
            text=True,
            timeout=300,
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
    done = run_old(START + FIT + TRAIN, path)
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
        done = run_old(START + FIT + TRAIN, shown, SMDEBUG_CONFIG_FILE_PATH=str(config))
    else:
        done = run_old(START + FIT + EXPLICIT + TRAIN, shown, run)
    assert done.returncode == 3, done.stderr
    (warning,) = list_said(done)
    assert "TensorFlow 2.12.1" in warning
    assert "gradients, inputs, labels, predictions, and inputs and outputs of layers are not" in warning

    found = dict(np.load(shown))
    assert found.keys() == shown_without_a_hook.keys()
    for name, value in shown_without_a_hook.items():
        np.testing.assert_array_equal(found[name], value)

    trial = create_trial(str(run))
    # Twice three batches of training and two of validation.
    assert trial.steps() == list(range(10))
    for count, step in enumerate((0, 1, 2, 5, 6, 7)):
        np.testing.assert_array_equal(trial.tensor("a/weights/a/kernel:0").value(step), found[f"kernel{count}"])
        assert trial.tensor("loss").value(step).item() == pytest.approx(found[f"loss{count}"].item())
    names = set(trial.tensor_names())
    assert {"mae", "val_loss", "val_mae", "b/weights/b/kernel:0", "Adam/a/kernel/m:0", "Adam/iter:0"} <= names
    assert not [name for name in names if "gradient" in name]


def test_tapes_and_optimizers_of_a_loop_are_captured(
    run_old: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = run_old(LOOP, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert len(list_said(done)) == 1
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
    done = run_old(START + "import tensorflow" + SAYS_NOTHING_WAS_ASKED)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
