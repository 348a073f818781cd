"""Tests of Keras on torch and JAX, where TensorFlow cannot be imported.

Unmodified scripts, hooks, and trainings without a hook.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug import modes
from smdebug.trials import create_trial
from tests.unit.smdebug.scripts import START, build_script_runner
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

# One process for each back end: importing one takes seconds.
TRAINS = """
import json, os, sys
import numpy as np
sys.modules["tensorflow"] = None
import keras
assert not [name for name in sys.modules if name.startswith("smdebug.tensorflow.keras")]
out = os.environ["OUT"]
x = np.random.default_rng(0).random((24, 4), np.float32)
y = np.random.default_rng(1).random((24, 2), np.float32)
on_torch = keras.backend.backend() == "torch"
layers, optimizers = keras.layers, keras.optimizers
options = {"batch_size": 8, "epochs": 2, "verbose": 0, "shuffle": False}
noted = {}

class Recorder(keras.callbacks.Callback):
    def __init__(self, note):
        super().__init__()
        self.note = note
    def on_train_batch_end(self, batch, logs=None):
        if not on_torch:
            self.model.jax_state_sync()
        self.note.append([float(logs["loss"]), self.model.layers[0].get_weights()[0].tolist()])

def sequential(*inputs):
    return keras.Sequential([*inputs, layers.Dense(3, name="a"), layers.Dropout(0.2), layers.BatchNormalization(),
                             layers.Dense(2, name="b")], name="net")

def shared():
    entry, part = keras.Input((4,)), layers.Dense(4, name="part")
    hidden = part(part(entry))
    frozen = layers.Dense(4, trainable=False)(hidden)
    return keras.Model(entry, layers.Dense(2)(layers.Add()([hidden, frozen])))

class Sub(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner, self.last = keras.Sequential([layers.Dense(3), layers.LayerNormalization()]), layers.Dense(2)
    def call(self, x, training=None):
        return self.last(self.inner(x, training=training))

def recurrent():
    return keras.Sequential([keras.Input((4,)), layers.Reshape((2, 2)), layers.LSTM(3), layers.Dense(2)])

def half():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, dtype="mixed_bfloat16"), layers.Dense(2)])

class Own(Sub):
    # A step of the script's own, by what the back end has.
    def train_step(self, *given):
        if not on_torch:
            return super().train_step(*given)
        x, y, _ = keras.utils.unpack_x_y_sample_weight(given[0])
        self.zero_grad()
        loss = ((self(x, training=True) - y) ** 2).mean()
        loss.backward()
        trained = [variable for variable in self.trainable_weights if variable.value.grad is not None]
        self.optimizer.apply([variable.value.grad for variable in trained], trained)
        return {"loss": loss}

class Ending(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        self.model.stop_training = self.model.stop_training or batch == 1

sgd = lambda: optimizers.SGD(0.1)
kinds = {
    "plain": (lambda: sequential(keras.Input((4,))), sgd, {}),
    "late": (sequential, lambda: optimizers.Adam(0.01), {}),
    "shared": (shared, lambda: optimizers.AdamW(0.01, clipnorm=0.5), {}),
    "subclassed": (Sub, lambda: optimizers.RMSprop(0.01, momentum=0.1), {"run_eagerly": True}),
    "own step": (Own, sgd, {}),
    "recurrent": (recurrent, lambda: optimizers.Adagrad(0.1), {}),
    "half": (half, lambda: optimizers.Nadam(0.01), {}),
    "scaled": (shared, lambda: optimizers.LossScaleOptimizer(sgd(), initial_scale=1024.0, dynamic_growth_steps=2), {}),
    "added up": (shared, lambda: optimizers.SGD(0.1, gradient_accumulation_steps=2), {}),
    "averaged": (shared, lambda: optimizers.Lion(0.01, use_ema=True, ema_momentum=0.5), {}),
    "ended": (shared, lambda: optimizers.Adamax(0.01, loss_scale_factor=64.0), {}),
}
if not on_torch:
    # JAX compiles each anew, step by step or as a whole, and seconds long.
    kinds = {kind: kinds[kind] for kind in ("plain", "late", "half", "scaled", "ended")}
    kinds["executions"] = (shared, sgd, {"steps_per_execution": 2})

def train(kind, callbacks):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    build, optimizer, given = kinds[kind]
    model = build()
    model.compile(optimizer(), "mse", metrics=["mae"], **given)
    more = [Ending()] if kind == "ended" else []
    history = model.fit(x, y, validation_data=(x, y), callbacks=[*callbacks, *more], **options).history
    predicted = model.predict(x, verbose=0, callbacks=callbacks)
    return [{name: list(map(float, values)) for name, values in history.items()}, predicted.astype(float).tolist()]

note = []
train("plain", [Recorder(note)])
noted["untouched"] = note
import smdebug.tensorflow as smd
smd.get_hook().close()
smd.del_hook()
for kind in kinds:
    bare = train(kind, [])
    hook = smd.KerasHook(f"{out}/{kind}", save_all=True, save_config=smd.SaveConfig(save_interval=1),
                         reduction_config=smd.ReductionConfig(reductions=["mean"], save_raw_tensor=True))
    hooked = train(kind, [hook])
    hook.close()
    smd.del_hook()
    noted[kind] = bare == hooked
hook = smd.KerasHook(f"{out}/loop")
assert hook.wrap_optimizer(noted) is noted and hook.wrap_tape(noted) is noted
hook.register_model(None)
json.dump(noted, open(f"{out}/noted.json", "w"))
"""


# The number of trainings in each back end.
COUNTS = {"torch": 11, "jax": 6}


@pytest.fixture(scope="module", params=COUNTS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any, str]:
    """The back end, where the runs are, what Keras reported, what was said."""
    back_end = request.param
    folder = tmp_path_factory.mktemp(back_end)
    config = folder / "debughookconfig.json"
    asked = [{"CollectionName": name} for name in ("weights", "gradients", "optimizer_variables")]
    hook_parameters = {"save_interval": "1"}
    config.write_text(
        json.dumps({"LocalPath": f"{folder}/run", "CollectionConfigurations": asked, "HookParameters": hook_parameters})
    )
    run = build_script_runner(
        sys.executable, folder, seconds=500, KERAS_BACKEND=back_end, OUT=str(folder), HOME=str(folder)
    )
    done = run(START + TRAINS, SMDEBUG_CONFIG_FILE_PATH=str(config))
    assert done.returncode == 0, done.stderr
    noted = json.loads((folder / "noted.json").read_text())
    trained = [kind for kind in noted if kind != "untouched"]
    assert len(trained) == COUNTS[back_end]
    return back_end, folder, noted, done.stdout + done.stderr


def test_trainings_are_those_without_a_hook(trained: tuple[str, Path, Any, str]) -> None:
    back_end, _, noted, said = trained
    noted = {kind: is_same for kind, is_same in noted.items() if kind != "untouched"}
    assert [kind for kind, is_same in noted.items() if not is_same] == []
    assert "Not saved: a step" not in said
    assert said.count(f"Keras runs on {back_end}: losses, metrics, ") == 1
    assert said.count("Not saved: the steps of a tape.") == said.count("Not saved: the steps of a loop of") == 1


def test_an_untouched_script_shows_what_keras_reports(trained: tuple[str, Path, Any, str]) -> None:
    back_end, folder, noted, _ = trained
    trial = create_trial(f"{folder}/run")
    assert [len(trial.steps(mode=mode)) for mode in (modes.TRAIN, modes.EVAL, modes.PREDICT)] == [6, 6, 1]
    loss, kernel = trial.tensor("loss"), trial.tensor("a/weights/net/a/kernel:0")
    for step, (mean, weights) in enumerate(noted["untouched"]):
        assert loss.value(step, mode=modes.TRAIN).item() == pytest.approx(mean)
        np.testing.assert_array_equal(kernel.value(step, mode=modes.TRAIN), np.float32(weights))
    assert "sgd/learning_rate:0" in trial.tensor_names(collection="optimizer_variables")
    assert {"val_loss"} < set(trial.tensor_names(collection="losses")) | {"mae"}
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == (6 if back_end == "torch" else 0)


@pytest.mark.parametrize("kind", ["plain", "own step", "scaled"])
def test_weights_move_by_the_gradients_of_torch(kind: str, trained: tuple[str, Path, Any, str]) -> None:
    back_end, folder, _, _ = trained
    if back_end == "jax":
        assert create_trial(f"{folder}/plain").tensor_names(collection="gradients") == []
        return
    trial = create_trial(f"{folder}/{kind}")
    weights = [name for name in trial.tensor_names() if "/weights/" in name and "moving" not in name]
    moved = 0
    for name in weights:
        gradient = f"gradients/{name.partition('/weights/')[2].removesuffix(':0')}Grad"
        if gradient not in trial.tensor_names():
            continue
        moved += 1
        for step in range(1, 6):
            before, after = (trial.tensor(name).value(found, mode=modes.TRAIN) for found in (step - 1, step))
            expected = 0.1 * trial.tensor(gradient).value(step, mode=modes.TRAIN)
            np.testing.assert_allclose(before - after, expected, rtol=1e-3, atol=1e-6)
    assert moved == {"plain": 6, "own step": 6, "scaled": 4}[kind]


def test_half_precision_is_widened_and_reduced(trained: tuple[str, Path, Any, str]) -> None:
    _, folder, _, _ = trained
    trial = create_trial(f"{folder}/half")
    name = next(name for name in trial.tensor_names(collection="weights") if name.endswith("kernel:0"))
    tensor = trial.tensor(name)
    assert tensor.reduction_value(0, "mean") == pytest.approx(tensor.value(0).mean(), rel=1e-5)
    assert WrittenRun(folder / "half").has_ended
