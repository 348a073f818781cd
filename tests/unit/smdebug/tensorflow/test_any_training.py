"""Tests that a hook changes no bit of any kind of training.

Each runs with a hook that saves everything, and without one.

SMDEBUG_FUZZ_TRAININGS=200 tries as many mixtures instead of three.
"""

import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import smdebug.tensorflow as smd
from tests.unit.smdebug.tensorflow.frameworks import keras, layers, tf
from tests.unit.smdebug.tensorflow.frameworks import optimizers as optim
from tests.unit.smdebug.tensorflow.small_models import MakeHook

# What is odd about these trainings, Keras says without a hook, too. By day test_keras_hook.py and test_tape.py compare
# one training of each way with one that has no hook.
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]

L = layers
ROWS, BATCH, FEATURES, CLASSES = 12, 4, 6, 3
MIXTURES = int(os.environ.get("SMDEBUG_FUZZ_TRAININGS", "3"))
# What TensorFlow merges of a layer and the next one, unless it is to give out what lies between.
MERGES = ("constant_folding", "arithmetic_optimization")


def make_noisy_layer() -> Any:
    """A layer that draws numbers, keeps a state, and adds to the loss."""

    class Noisy(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.seeds = keras.random.SeedGenerator(3)
            self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False)

        def call(self, x: Any, training: bool = False) -> Any:
            self.seen.assign_add(1.0)
            self.add_loss(0.01 * keras.ops.mean(keras.ops.square(x)))
            return x + keras.random.normal((FEATURES,), seed=self.seeds) if training else x

    return Noisy()


def make_branching_layer() -> Any:
    """A layer that computes within a branch and a loop of the graph."""

    class Branching(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.part = L.Dense(FEATURES)

        def build(self, shape: Any) -> None:
            self.part.build(shape)

        def call(self, x: Any) -> Any:
            x = keras.ops.cond(keras.ops.sum(x) > 0, lambda: self.part(x), lambda: -self.part(x))
            _, x = keras.ops.while_loop(lambda number, _: number < 2, lambda number, y: (number + 1, y * 0.5), (0, x))
            return x

    return Branching()


def share(x: Any) -> Any:
    layer = L.Dense(FEATURES, activation="tanh")
    return layer(layer(x))


def nest(x: Any) -> Any:
    inner = keras.Sequential([keras.Input((FEATURES,)), L.Dense(4, activation="relu"), L.Dense(FEATURES)])
    return L.Add()([inner(x), x])


def freeze(x: Any) -> Any:
    return L.Dense(FEATURES)(L.Dense(FEATURES, trainable=False)(x))


def convolve(x: Any) -> Any:
    image = L.Reshape((2, 3, 1))(x)
    return L.Flatten()(L.MaxPooling2D((1, 2))(L.BatchNormalization()(L.Conv2D(4, 2, padding="same")(image))))


def embed(x: Any) -> Any:
    words = L.Lambda(lambda values: keras.ops.cast(keras.ops.clip(keras.ops.abs(values) * 8, 0, 8), "int32"))(x)
    return L.GlobalAveragePooling1D()(L.Embedding(9, FEATURES, mask_zero=True)(words))


def attend(x: Any) -> Any:
    words = L.Reshape((3, 2))(x)
    return L.Flatten()(L.LayerNormalization()(L.MultiHeadAttention(2, 4, dropout=0.1)(words, words)))


BODIES: dict[str, Callable[[Any], Any]] = {
    "dense": lambda x: L.Dropout(0.3)(L.Dense(FEATURES, activation="gelu", kernel_regularizer="l2")(x)),
    "convolution": convolve,
    "separable": lambda x: L.Flatten()(L.SeparableConv1D(3, 2)(L.Reshape((3, 2))(x))),
    "transposed": lambda x: L.Flatten()(L.Conv1DTranspose(3, 2)(L.Reshape((3, 2))(x))),
    "lstm": lambda x: L.LSTM(4)(L.Reshape((3, 2))(x)),
    "gru, both ways": lambda x: L.Bidirectional(L.GRU(3, recurrent_dropout=0.2))(L.Reshape((3, 2))(x)),
    "unrolled": lambda x: L.SimpleRNN(4, unroll=True)(L.Reshape((3, 2))(x)),
    "attention": attend,
    "embedding": embed,
    "norms": lambda x: L.UnitNormalization()(L.GroupNormalization(3)(L.BatchNormalization()(x))),
    "spectral": lambda x: L.SpectralNormalization(L.Dense(FEATURES))(x),
    "distributed": lambda x: L.Flatten()(L.TimeDistributed(L.Dense(3))(L.Reshape((3, 2))(x))),
    "activations": lambda x: L.PReLU()(L.GaussianNoise(0.1)(L.LeakyReLU()(x))),
    "einsum": lambda x: L.EinsumDense("ab,bc->ac", FEATURES, bias_axes="c", kernel_constraint="max_norm")(x),
    "shared": share,
    "nested": nest,
    "frozen": freeze,
    "noisy": lambda x: make_noisy_layer()(L.Dense(FEATURES)(x)),
    "branching": lambda x: make_branching_layer()(x),
}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(0.1),
    "momentum": lambda: optim.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=1.0),
    "Adam": lambda: optim.Adam(0.01, amsgrad=True),
    "AdamW, average": lambda: optim.AdamW(0.01, use_ema=True, ema_momentum=0.9),
    "accumulated": lambda: optim.Adam(0.01, gradient_accumulation_steps=2),
    "schedule": lambda: optim.RMSprop(optim.schedules.ExponentialDecay(0.01, 2, 0.5), centered=True, momentum=0.1),
    "Adagrad": lambda: optim.Adagrad(0.1, global_clipnorm=1.0),
    "Adadelta": lambda: optim.Adadelta(1.0),
    "Adamax": lambda: optim.Adamax(0.01, clipvalue=0.5),
    "Nadam": lambda: optim.Nadam(0.01),
    "Ftrl": lambda: optim.Ftrl(0.1),
    "Lion": lambda: optim.Lion(0.01),
    "Lamb": lambda: optim.Lamb(0.01),
    "Adafactor": lambda: optim.Adafactor(0.01),
    "Muon": lambda: optim.Muon(0.01),
    "loss scale": lambda: optim.LossScaleOptimizer(optim.SGD(0.1), initial_scale=1024.0),
}
LOSSES: dict[str, Callable[[], Any]] = {
    "crossentropy": lambda: keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
    "focal": lambda: keras.losses.BinaryFocalCrossentropy(from_logits=True),
    "mse": lambda: "mse",
    "mean_absolute_error": lambda: keras.losses.MeanAbsoluteError(),
    "huber": lambda: keras.losses.Huber(),
    "log_cosh": lambda: keras.losses.LogCosh(),
    "hinge": lambda: keras.losses.CategoricalHinge(),
    "cosine": lambda: keras.losses.CosineSimilarity(),
    "kl": lambda: keras.losses.KLDivergence(),
    "own": lambda: lambda labels, predicted: keras.ops.mean(keras.ops.abs(labels - predicted) ** 3, axis=-1),
}
COMPILED: dict[str, dict[str, Any]] = {
    "fit": {},
    "fit eagerly": {"run_eagerly": True},
    "fit by XLA": {"jit_compile": True},
    "fit, two steps an execution": {"steps_per_execution": 2},
}
LOOPS = ("train_on_batch", "tape", "compiled tape")
WAYS = (*COMPILED, *LOOPS)


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    body: str
    optimizer: str
    loss: str
    way: str

    def __str__(self) -> str:
        return f"{self.body}-{self.optimizer}-{self.loss}-{self.way}"


def list_each() -> Iterator[Recipe]:
    """Each of each once at least."""
    parts = BODIES, OPTIMIZERS, LOSSES, (*COMPILED, *LOOPS)
    endless = [itertools.cycle(part) for part in parts]
    for _ in BODIES:
        yield Recipe(*map(next, endless))


def mix() -> Iterator[Recipe]:
    """What chance brings together."""
    chance = random.Random(0)
    parts = [list(part) for part in (BODIES, OPTIMIZERS, LOSSES, WAYS)]
    for _ in range(MIXTURES):
        yield Recipe(*map(chance.choice, parts))


def train(recipe: Recipe, make_hook: "Callable[[], smd.KerasHook] | None") -> list[Any]:
    """Train, and return all that a script may see of it."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    generator = np.random.default_rng(0)
    x = generator.standard_normal((ROWS, FEATURES), np.float32)
    y = np.eye(CLASSES, dtype=np.float32)[generator.integers(0, CLASSES, ROWS)]
    seen: list[Any] = []
    try:
        inputs = keras.Input((FEATURES,))
        model = keras.Model(inputs, L.Dense(CLASSES)(BODIES[recipe.body](inputs)))
        optimizer, loss = OPTIMIZERS[recipe.optimizer](), LOSSES[recipe.loss]()
        options = COMPILED.get(recipe.way, {})
        model.compile(optimizer=optimizer, loss=loss, metrics=["mae"], **{"jit_compile": False, **options})
        hook = make_hook() if make_hook else None
        if recipe.way in LOOPS:
            seen += go_by_hand(recipe.way, model, loss, hook, x, y)
        else:
            history = model.fit(
                x, y, batch_size=BATCH, epochs=2, verbose=0, validation_data=(x, y), callbacks=[hook] if hook else []
            ).history
            seen += [history, model.predict(x, verbose=0, callbacks=[hook] if hook else [])]
    except Exception as error:  # noqa: BLE001 - a script may see one, and then must see the same one
        # Its text may name the operation of the graph that fails, which is another one where there are more.
        return [type(error).__name__]
    return [*seen, *(variable.numpy() for variable in (*model.variables, *optimizer.variables))]


def go_by_hand(way: str, model: Any, loss: Any, hook: "smd.KerasHook | None", x: Any, y: Any) -> list[Any]:
    batches = [(x[start : start + BATCH], y[start : start + BATCH]) for start in range(0, ROWS, BATCH)]
    if way == "train_on_batch":
        return [float(value) for batch in batches for value in model.train_on_batch(*batch)]
    if hook:
        hook.register_model(model)
        hook.wrap_optimizer(model.optimizer)

    def step(images: Any, labels: Any) -> Any:
        tape = tf.GradientTape()
        with hook.wrap_tape(tape) if hook else tape as tape:
            value = tf.reduce_mean(keras.losses.get(loss)(labels, model(images, training=True)))
        gradients = tape.gradient(value, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    run = tf.function(step) if way == "compiled tape" else step
    return [float(run(*map(tf.constant, batch))) for batch in batches]


def assert_alike(first: list[Any], second: list[Any], tolerance: float) -> None:
    assert len(first) == len(second), (first[:1], second[:1])
    for one, other in zip(first, second, strict=True):
        if tolerance == 0 or isinstance(one, str):
            np.testing.assert_equal(one, other)
        else:
            for each, of_other in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
                np.testing.assert_allclose(each, of_other, rtol=tolerance, atol=tolerance)


@pytest.fixture
def make_thorough_hook(make_hook: MakeHook) -> Callable[[], "smd.KerasHook"]:
    wanted = ["all", "optimizer_variables"]
    config = smd.SaveConfig(save_interval=2)
    return lambda: make_hook(save_all=True, include_collections=wanted, save_config=config)


@pytest.fixture
def merges_nothing() -> Iterator[None]:
    tf.config.optimizer.set_experimental_options(dict.fromkeys(MERGES, False))
    yield
    tf.config.optimizer.set_experimental_options(dict.fromkeys(MERGES, True))


RECIPES = [*list_each(), *mix()]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_hook_changes_nothing(
    recipe: Recipe, make_thorough_hook: Callable[[], "smd.KerasHook"], merges_nothing: None
) -> None:
    bare, captured = train(recipe, None), train(recipe, make_thorough_hook)
    # XLA may compute in another order where a function has more outputs.
    assert_alike(bare, captured, 1e-5 if "XLA" in recipe.way else 0.0)


@pytest.mark.parametrize("recipe", RECIPES[:3], ids=str)
def test_where_tensorflow_merges_layers_only_the_last_digits_differ(
    recipe: Recipe, make_thorough_hook: Callable[[], "smd.KerasHook"]
) -> None:
    bare, captured = train(recipe, None), train(recipe, make_thorough_hook)
    assert [value for value in bare if isinstance(value, str)] == []
    assert_alike(bare, captured, 1e-6 if "XLA" not in recipe.way else 1e-5)
