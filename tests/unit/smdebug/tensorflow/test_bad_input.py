"""Tests of scripts that are hard to capture: omissions are logged.

Nothing of it reaches the training.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.exceptions import InvalidCollectionConfiguration, SMDebugNotImplementedError, SMDebugValueError
from tests.unit.smdebug.scripts import RunScript
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data, make_eager_model, make_model, make_recorder
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

X, Y = make_data(16)


def fit(model: Any, *callbacks: Any, x: Any = X, y: Any = Y) -> Any:
    return model.fit(x, y, batch_size=8, verbose=0, shuffle=False, callbacks=list(callbacks))


def warnings_in(said: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in said.records if record.name == "smdebug" and record.levelno >= logging.WARNING
    ]


def test_a_model_without_weights(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: x[:, :2], name="cut")])
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="trainable weights"):
        fit(model, make_hook(save_all=True))
    assert {"loss", "cut/outputs", "labels"} <= set(run.values(0))
    assert len(warnings_in(said)) == 1
    assert "no weights" in warnings_in(said)[0]


def test_a_loss_that_is_not_a_number(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    model = make_eager_model()
    fit(model, make_hook(save_all=True), y=Y * np.float32(np.nan))
    assert np.isnan(run.values(1)["loss"]).all()
    assert np.isnan(run.values(1)["gradients/net/d1/kernelGrad"]).all()
    assert warnings_in(said) == []


def test_a_hook_given_twice_counts_once(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook()
    fit(make_eager_model(), hook, hook)
    assert run.steps == [0, 1]


def test_a_closed_hook_changes_nothing(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)
    model = make_eager_model()
    fit(model, hook)
    hook.close()
    before = run.steps
    recorder = make_recorder()
    fit(model, hook, recorder)
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(model(X))
    assert len(tape.gradient(loss, model.trainable_variables)) == 4
    assert run.steps == before


def test_capture_that_fails_costs_the_value_only(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make_hook(save_all=True)

    def fail(self: Any, layer: Any, args: Any, kwargs: Any, result: Any) -> None:
        raise RuntimeError("no layer today")

    monkeypatch.setattr("smdebug.tensorflow.steps.taps.Collector.add_call", fail)
    model = make_eager_model()
    bare = make_eager_model()
    fit(bare)
    fit(model, hook)
    np.testing.assert_array_equal(model.get_weights()[0], bare.get_weights()[0])
    assert {"loss", "gradients/net/d1/kernelGrad"} <= set(run.values(1))
    assert len(warnings_in(said)) == 1
    assert "no layer today" in warnings_in(said)[0]


def test_a_folder_that_cannot_be_written_costs_the_run_only(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(save_all=True)
    run.path.parent.mkdir(exist_ok=True)
    run.path.write_text("in the way")
    history = fit(make_eager_model(), hook)
    assert len(history.history["loss"]) == 1
    assert warnings_in(said)


def test_an_error_of_the_script_reaches_it_and_the_next_training_works(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)

    class Failing(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            raise KeyError("mine")

    model = make_model()
    model.make_train_function()
    own = model.train_function
    with pytest.raises(KeyError, match="mine"):
        fit(model, hook, Failing())
    fit(model, hook)
    assert model.train_function is own
    hook.close()
    assert run.steps == [1, 2]
    assert set(run.values(2)) > {"loss"}


def test_a_step_that_raises_is_the_scripts_own(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)

    class Raising(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> None:
            raise NotImplementedError("not yet")

    model = Raising()
    model.compile("sgd", "mse")
    with pytest.raises(NotImplementedError, match="not yet"):
        fit(model, hook)
    model = make_eager_model()
    fit(model, hook)
    hook.close()
    assert {"loss", "d1/outputs"} <= set(run.values(2))


def test_what_a_loop_inside_the_graph_computes_is_left_out(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    class Inner(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__(name="inner")
            self.dense = keras.layers.Dense(4, name="looped")

        def build(self, shape: Any) -> None:
            self.dense.build(shape)

        def call(self, x: Any) -> Any:
            return keras.ops.fori_loop(0, 3, lambda _, state: self.dense(state), x)

    model = keras.Sequential([keras.Input((4,)), Inner(), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    fit(model, make_hook(save_all=True))
    assert "inner/outputs" in run.values(0)
    assert "looped/outputs" not in run.values(0)
    assert warnings_in(said) == []


def test_a_collection_that_selects_nothing_is_refused_at_the_first_step(make_hook: MakeHook) -> None:
    hook = make_hook(include_collections=["mine"])
    hook.get_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration):
        fit(make_model(), hook)


def test_text_and_ragged_inputs(make_hook: MakeHook, run: WrittenRun) -> None:
    vectorize = keras.layers.TextVectorization(vocabulary=["a", "b"], name="words")
    entry = keras.Input((1,), dtype="string")
    model = keras.Model(entry, keras.layers.Embedding(5, 2)(vectorize(entry)))
    texts = tf.constant([["a b"], ["b"]])
    model.predict(texts, callbacks=[make_hook(save_all=True)], verbose=0)
    values = run.values(0)
    assert "inputs" not in values
    assert values["words/outputs"].shape == (2, 2)
    assert values["predictions"].shape == (2, 2, 2)


def test_get_hook_knows_its_types(run: WrittenRun) -> None:
    assert smd.get_hook() is None
    with pytest.raises(SMDebugValueError, match="estimators"):
        smd.get_hook("estimators")
    hook = smd.KerasHook(str(run.path))
    try:
        assert smd.get_hook() is smd.get_hook("keras") is hook
        assert smd.get_hook("session") is smd.get_hook() is None
        session_hook = smd.SessionHook(str(run.path))
        session_hook.close()
        assert smd.get_hook("estimator") is smd.get_hook("session") is session_hook
        smd.set_hook(hook)
        assert smd.get_hook("estimator", str(run.path / "missing.json"), create_if_not_exists=True) is None
        assert smd.get_hook() is None
    finally:
        hook.close()
        smd.del_hook()


def test_a_log_value_that_is_no_number_costs_itself_only(make_hook: MakeHook, run: WrittenRun) -> None:
    class OddLogs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs |= {"nothing": None, "parts": {"a": 2.0 + epoch}, "last": 3.0}

    fit(make_eager_model(), OddLogs(), make_hook())
    values = run.values(run.steps[-1])
    assert (values["a"].item(), values["last"].item()) == (2.0, 3.0)
    assert not {"nothing", "parts"} & set(values)


def test_a_keras_that_lacks_what_is_tapped_costs_the_steps_only(
    make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smdebug.tensorflow.steps import taps

    monkeypatch.setattr("smdebug.tensorflow.steps.keras_3_steps.UPDATERS", (type("Optimizer", (), {}),))
    taps.find_tapped.cache_clear()
    with pytest.raises(SMDebugNotImplementedError, match=r"Optimizer of Keras .* has no method apply\(\)"):
        taps.find_tapped()
    model, bare = make_eager_model(optimizer="sgd"), make_eager_model(optimizer="sgd")
    fit(bare)
    fit(model, make_hook(save_all=True))
    np.testing.assert_array_equal(model.get_weights()[0], bare.get_weights()[0])
    (warning,) = warnings_in(said)
    assert "Not saved: a step (SMDebugNotImplementedError: Optimizer of Keras" in warning


# Keras' own, when it saves under numpy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_model_that_a_hook_has_seen_can_be_saved_and_loaded(
    make_hook: MakeHook, run: WrittenRun, tmp_path: Path
) -> None:
    hook = make_hook(include_collections=["gradients", "optimizer_variables"])
    model = make_eager_model(optimizer=hook.wrap_optimizer(keras.optimizers.Adam(0.01)))
    fit(model, hook)
    assert len([name for name in run.values(1) if name.startswith("gradients/")]) == 4
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), model.predict(X, verbose=0))
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)


CRASH = """
import os, keras, numpy as np, smdebug.tensorflow as smd
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile("sgd", "mse")
class Dying(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 2:
            os._exit(7)
hook = smd.KerasHook(os.environ["RUN"], save_all=True, save_config=smd.SaveConfig(save_interval=1))
model.fit(np.ones((32, 4)), np.ones((32, 2)), batch_size=8, verbose=0, callbacks=[hook, Dying()])
"""


@pytest.mark.nightly  # an interpreter of its own; the recorder is that of PyTorch's test
def test_steps_before_a_crash_are_whole(run_script: RunScript, run: WrittenRun) -> None:
    done = run_script(CRASH, RUN=str(run.path), TF_CPP_MIN_LOG_LEVEL="2")
    assert done.returncode == 7, done.stderr
    assert run.steps == [0, 1]
    assert "loss" in run.values(1)
    assert run.collections()
