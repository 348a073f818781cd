"""Tests of every kind of Keras model, and of strategies with replicas."""

from typing import Any

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.tensorflow.steps.model_names import ModelNames
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data, make_model, make_recorder, make_taped_model
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

X, Y = make_data(16)
NUMBERS = {"loss", "batch"}


def fit(model: Any, *callbacks: Any, x: Any = X, y: Any = Y, **compile_arguments: Any) -> Any:
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1), "loss": "mse", **compile_arguments})
    return model.fit(x, y, batch_size=8, verbose=0, shuffle=False, callbacks=list(callbacks))


def make_subclassed_model() -> Any:
    class Block(keras.layers.Layer):
        def __init__(self, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.inner = keras.layers.Dense(3, name="inner")

        def call(self, x: Any) -> Any:
            return self.inner(x)

    class Subclassed(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="sub")
            self.block = Block(name="block")
            self.head = keras.layers.Dense(2, name="head")
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

        def call(self, x: Any, training: bool = False) -> Any:
            return self.head(self.block(x)) * self.scale

    return Subclassed()


@pytest.mark.parametrize("eagerly", [False, True])
def test_a_subclassed_model_with_layers_of_layers(make_hook: MakeHook, run: WrittenRun, eagerly: bool) -> None:
    model = make_subclassed_model()
    recorder = make_recorder()
    fit(model, make_hook(save_all=True), recorder, run_eagerly=eagerly)
    paths = {
        "block/weights/sub/block/inner/kernel:0",
        "block/weights/sub/block/inner/bias:0",
        "head/weights/sub/head/kernel:0",
        "head/weights/sub/head/bias:0",
        "sub/weights/sub/scale:0",
    }
    # Its variables are made by the first batch, whose step shows them all the same.
    for step in (0, 1):
        values = run.values(step)
        assert {name for name in values if "/weights/" in name} == paths
        assert {f"gradients/{name.partition('/weights/')[2][:-2]}Grad" for name in paths} <= set(values)
        assert {"block/inputs", "block/outputs", "inner/inputs", "inner/outputs", "head/outputs"} <= set(values)
        for variable, expected in zip(model.weights, recorder.weights[step], strict=True):
            (name,) = [name for name in paths if name.endswith(f"weights/{variable.path}:0")]
            np.testing.assert_array_equal(values[name], expected)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param({"jit_compile": True}, id="jit", marks=pytest.mark.nightly),
        pytest.param({"run_eagerly": True}, id="eager"),
    ],
)
def test_the_first_step_of_a_model_that_it_builds(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture, way: dict[str, bool]
) -> None:
    class Late(keras.Model):
        """Its layers, too, are made by the first batch."""

        def build(self, shape: Any) -> None:
            self.drop = keras.layers.Dropout(0.0, name="drop")
            self.head = keras.layers.Dense(2, name="head")

        def call(self, x: Any, training: bool = False) -> Any:
            return self.head(self.drop(x, training=training))

    model = Late(name="late")
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_steps=[0, 2]))
    recorder = make_recorder()
    fit(model, hook, recorder, x=np.tile(X, (2, 1)), y=np.tile(Y, (2, 1)), **way)
    first, third = run.values(0), run.values(2)
    assert first.keys() == third.keys() >= {"drop/outputs", "head/inputs", "gradients/late/head/kernelGrad"}
    for values, step in ((first, 0), (third, 2)):
        np.testing.assert_array_equal(values["head/weights/late/head/kernel:0"], recorder.weights[step][0])
    # A step of plain gradient descent.
    change = recorder.weights[2][0] - recorder.weights[1][0]
    np.testing.assert_allclose(third["gradients/late/head/kernelGrad"], change / -0.1, rtol=1e-3, atol=1e-5)
    collections = run.collections()["collections"]
    assert "head/weights/late/head/kernel:0" in collections["weights"]["tensor_names"]
    assert [record for record in said.records if record.name == "smdebug" and record.levelname != "INFO"] == []


def test_nested_models_and_a_shared_layer(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    shared = keras.layers.Dense(3, name="shared")
    entry = keras.Input((4,))
    encoder = keras.Model(entry, keras.layers.Dense(4, name="same")(entry), name="encoder")
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    joined = keras.layers.Concatenate(name="join")([shared(encoder(left)), shared(right)])
    outer = keras.Model({"left": left, "right": right}, keras.layers.Dense(2, name="same")(joined), name="outer")
    fit(outer, make_hook(save_all=True), x={"left": X, "right": X + 1}, **quick_way_without_xla)
    values = run.values(0)
    assert {"shared/outputs_0", "shared/outputs_1", "join/inputs_0", "join/inputs_1", "join/outputs"} <= set(values)
    assert {"inputs_0", "inputs_1", "labels", "predictions"} <= set(values)
    # Two layers of one name: what they show is told apart.
    sames = {name for name in values if "same" in name and name.endswith("outputs")}
    assert len(sames) == 2
    kernels = [
        name for name in values if name.endswith(":0") and "same" in name and "kernel" in name and "weights" in name
    ]
    assert sorted(values[name].shape for name in kernels) == [(4, 4), (6, 2)]
    gradients = [name for name in values if name.startswith("gradients") and "same" in name and "kernel" in name]
    assert sorted(values[name].shape for name in gradients) == [(4, 4), (6, 2)]
    assert {"encoder/inputs", "encoder/outputs"} <= set(values)


def test_several_outputs_and_losses(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    entry = keras.Input((4,))
    heads = {name: keras.layers.Dense(2, name=name)(entry) for name in ("a", "b")}
    model = keras.Model(entry, heads)
    told: dict[str, Any] = {"loss": {"a": "mse", "b": "mae"}, "metrics": {"b": ["mse"]}, **quick_way_without_xla}
    history = fit(model, make_hook(), y={"a": Y, "b": Y}, **told)
    values = run.values(1)
    assert {"loss", "a_loss", "b_loss", "b_mse", "batch"} == set(values)
    for name, found in history.history.items():
        assert values[name] == pytest.approx(found)
    assert run.collections()["collections"]["losses"]["tensor_names"] == ["loss"]
    assert {"a_loss", "b_loss"} < set(run.collections()["collections"]["metrics"]["tensor_names"])


def test_an_embedding_a_recurrent_layer_and_a_normalization(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    entry = keras.Input((5,), dtype="int32")
    inner = keras.layers.LSTM(3, name="lstm")(keras.layers.Embedding(7, 4, name="emb")(entry))
    model = keras.Model(entry, keras.layers.Dense(2)(keras.layers.BatchNormalization(name="bn")(inner)), name="text")
    words = np.random.default_rng(0).integers(0, 7, (16, 5))
    fit(model, make_hook(save_all=True), x=words, **quick_way_without_xla)
    values = run.values(0)
    # What few words of a batch use is the whole table's gradient, filled up with zeros.
    assert values["gradients/emb/embeddingsGrad"].shape == (7, 4)
    assert values["lstm/outputs"].shape == (8, 3)
    # What is not trained is a weight without a gradient.
    assert {"bn/weights/bn/moving_mean:0", "bn/weights/bn/gamma:0", "gradients/bn/gammaGrad"} <= set(values)
    assert "gradients/bn/moving_meanGrad" not in values
    assert values["inputs"].dtype.kind == "i"


@pytest.mark.parametrize("policy", [pytest.param("mixed_bfloat16", marks=pytest.mark.nightly), "mixed_float16"])
def test_mixed_precision(
    make_hook: MakeHook, run: WrittenRun, policy: str, quick_way_without_xla: dict[str, bool]
) -> None:
    keras.mixed_precision.set_global_policy(policy)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="d")], name="net")
    before = model.get_weights()
    recorder = make_recorder()
    fit(model, make_hook(save_all=True), recorder, auto_scale_loss=True, **quick_way_without_xla)
    values = run.values(0)
    half = np.float16 if policy == "mixed_float16" else np.float32
    assert values["d/outputs"].dtype == half
    kernel = next(name for name in values if name.startswith("d/weights") and "kernel" in name)
    np.testing.assert_array_equal(values[kernel], recorder.weights[0][0])
    # The gradient of the loss itself: what its scale has blown up is not a step of 0.1 times it.
    gradient = next(name for name in values if name.startswith("gradients") and "kernel" in name)
    np.testing.assert_allclose(before[0] - 0.1 * values[gradient], values[kernel], rtol=1e-2, atol=1e-4)
    np.testing.assert_array_equal(values["d/outputs"].shape, (8, 2))


def test_a_gan_shows_the_gradients_of_both(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    class Gan(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="gan")
            self.generator, self.critic = keras.layers.Dense(4, name="g"), keras.layers.Dense(1, name="c")
            self.generator.build((None, 4))
            self.critic.build((None, 4))
            self.other = keras.optimizers.Adam()
            self.built = True

        def train_step(self, data: Any) -> Any:
            for layer, optimizer in ((self.critic, self.other), (self.generator, self.optimizer)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(self.critic(self.generator(data)))
                gradients = tape.gradient(loss, layer.trainable_variables)
                optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
            return {"g_loss": loss}

    model = Gan()
    fit(model, make_hook(save_all=True), y=None, **quick_way_without_xla)
    values = run.values(1)
    assert len([name for name in values if name.startswith("gradients/")]) == 4
    assert {"g/outputs_0", "g/outputs_1", "c/outputs_0", "g_loss"} <= set(values)


def train_replicas(*callbacks: Any) -> Any:
    keras.utils.set_random_seed(0)
    # With jit_compile=True Keras itself cannot: XLA reaches the variables of one replica only.
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="d")], name="net")
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", metrics=["mae"])
    before = model.get_weights()
    history = model.fit(X, Y, batch_size=8, verbose=0, shuffle=False, callbacks=list(callbacks))
    return before, model, history.history


@pytest.mark.nightly  # the next test compares the step of a hook with what it is to compute
def test_replicas_train_as_without_a_hook(make_hook: MakeHook) -> None:
    _, bare, bare_history = train_replicas()
    _, model, history = train_replicas(make_hook(save_all=True))
    for mine, theirs in zip(model.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert all(history[name] == pytest.approx(values) for name, values in bare_history.items())


def test_two_replicas_train_together(make_hook: MakeHook, run: WrittenRun) -> None:
    before, _, _ = train_replicas(make_hook(save_all=True, save_config=smd.SaveConfig(save_steps=[0, 1])))
    values = run.values(0)
    # The sum over the replicas is the gradient of the whole batch.
    output = X[:8] @ before[0] + before[1]
    expected = X[:8].T @ (2 * (output - Y[:8]) / output.size)
    np.testing.assert_allclose(values["gradients/net/d/kernelGrad"], expected, rtol=1e-4)
    np.testing.assert_array_equal(values["inputs"], X[:8])
    np.testing.assert_allclose(values["d/outputs"], output, rtol=1e-4)
    kernel = next(name for name in values if name.startswith("d/weights") and "kernel" in name)
    np.testing.assert_allclose(values[kernel], before[0] - 0.1 * expected, rtol=1e-4)
    assert run.collections()["_meta"]["num_workers"] == 1


# The first step is run by Keras' own function, the second one by the hook's.
def test_a_tape_of_a_replica_is_part_of_the_step_of_fit(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["gradients"], save_config=smd.SaveConfig(save_interval=1, start_step=1))

    # As many weights as the model of the test above: TensorFlow takes the two for one training of several processors.
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        model = make_taped_model(hook)
        model.compile(optimizer=keras.optimizers.SGD(0.1))
    model.fit(X, Y, batch_size=8, verbose=0, shuffle=False, callbacks=[hook])
    assert hook.step == 1
    assert run.steps == [1]
    assert len([name for name in run.values(1) if name.startswith("gradients/")]) == 2


def test_names_of_variables_that_clash_are_numbered() -> None:
    class Twice(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.one, self.two = (self.add_weight(name="w", shape=(1,)) for _ in range(2))

    model = keras.Sequential([keras.Input((4,)), Twice(name="t")], name="n")
    names = ModelNames(model)
    assert len(names.weights) == len(set(names.gradients.values())) == 2


def test_a_model_that_changes_between_steps_and_between_fits(make_hook: MakeHook, run: WrittenRun) -> None:
    model = make_model(run_eagerly=True)
    x, y = make_data(8)
    hook = make_hook(include_collections=["weights", "gradients"])

    class Freezes(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                self.model.layers[0].trainable = False

    model.fit(x, y, batch_size=2, verbose=0, callbacks=[hook, Freezes()])
    model.add(keras.layers.Dense(2, name="late"))
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    model.fit(x, y, batch_size=4, verbose=0, callbacks=[hook])
    hook.close()
    assert "late/weights/net/late/kernel:0" not in run.values(3)
    for step in range(6):
        gradients = {name for name in run.values(step) if name.startswith("gradients/")}
        parts = {"d1": step < 2, "d2": True, "late": step > 3}
        expected = {f"gradients/net/{part}/{kind}Grad" for part in parts if parts[part] for kind in ("kernel", "bias")}
        assert gradients == expected, step
    assert {"late/weights/net/late/kernel:0", "d1/weights/net/d1/kernel:0"} <= run.values(4).keys()
