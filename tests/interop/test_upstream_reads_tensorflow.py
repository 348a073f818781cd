"""Tests of our TensorFlow runs, read by the real smdebug 1.0.34.

That names are those of its own runs is tested in unit/smdebug/tensorflow/test_recorded_names.py.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.trials import create_trial
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream
from tests.unit.smdebug.tensorflow.frameworks import keras, tf

pytestmark = pytest.mark.nightly

EVERY = smd.SaveConfig(save_interval=1)
X, Y = np.random.default_rng(0).random((16, 4), np.float32), np.random.default_rng(1).random((16, 2), np.float32)
REDUCTIONS = smd.ReductionConfig(
    reductions=["min", "max", "mean", "std", "variance", "sum", "prod"], norms=["l1", "l2"]
)


@pytest.fixture(autouse=True)
def fresh_keras() -> Iterator[None]:
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    yield
    keras.mixed_precision.set_global_policy("float32")
    smd.del_hook()


def build_model() -> "keras.Model":
    layers = [keras.Input((4,)), keras.layers.Dense(3, name="d1"), keras.layers.Dense(2, name="d2")]
    model = keras.Sequential(layers, name="net")
    model.compile("adam", "mse", metrics=["mae"])
    return model


def fit(hook: "smd.KerasHook") -> None:
    model = build_model()
    model.fit(X, Y, batch_size=8, epochs=2, validation_data=(X, Y), verbose=0, callbacks=[hook])
    model.predict(X, batch_size=8, verbose=0, callbacks=[hook])
    hook.save_scalar("late", 1.0)
    hook.close()


def write_fit(out_dir: str) -> None:
    fit(smd.KerasHook(out_dir, save_all=True, save_config=EVERY))


def write_fit_reductions(out_dir: str) -> None:
    collections = ["weights", "gradients", "layers"]
    fit(smd.KerasHook(out_dir, include_collections=collections, save_config=EVERY, reduction_config=REDUCTIONS))


def write_fit_in_half_precision(out_dir: str) -> None:
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    fit(smd.KerasHook(out_dir, save_all=True, save_config=EVERY))


def write_tape(out_dir: str) -> None:
    hook = smd.KerasHook(out_dir, save_all=True, save_config=EVERY)
    model = build_model()
    hook.register_model(model)
    optimizer = hook.wrap_optimizer(keras.optimizers.SGD(0.1))
    optimizer.build(model.trainable_variables)

    @tf.function
    def step() -> None:
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((model(X) - Y) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    for _ in range(3):
        step()
    hook.close()


def write_session(out_dir: str) -> None:
    v1 = tf.compat.v1
    hook = smd.SessionHook(out_dir, save_all=True, save_config=EVERY)
    with tf.Graph().as_default():
        kernel = v1.get_variable("kernel", (4, 2), initializer=v1.ones_initializer())
        loss = v1.losses.mean_squared_error(Y, tf.matmul(tf.constant(X), kernel))
        train = hook.wrap_optimizer(v1.train.GradientDescentOptimizer(0.1)).minimize(loss)
        with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            for _ in range(3):
                session.run([train, loss])
    hook.close()


WRITERS = [write_fit, write_fit_reductions, write_fit_in_half_precision, write_tape, write_session]


@pytest.mark.parametrize("write", WRITERS)
def test_upstream_reads_the_same(write: Callable[[str], None], tmp_path: Path, upstream: Upstream) -> None:
    out_dir = str(tmp_path / "run")
    write(out_dir)
    original, ours = upstream.read_run(out_dir), read_ours(create_trial(out_dir))
    assert len(ours["tensors"]) > 5
    for name, found in ours["tensors"].items():
        assert found == original["tensors"][name], name
    assert ours == original
