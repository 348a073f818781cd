"""Tests of fit, evaluate and predict with a hook: runs and unchanged results."""

from typing import Any

import numpy as np
import pytest

import smdebug.tensorflow as smd
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data, make_eager_model, make_model, make_recorder
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

KERNEL, BIAS = "d1/weights/net/d1/kernel:0", "d1/weights/net/d1/bias:0"
WEIGHTS = {KERNEL, BIAS, "d2/weights/net/d2/kernel:0", "d2/weights/net/d2/bias:0"}
GRADIENTS = {f"gradients/net/{name}Grad" for name in ("d1/kernel", "d1/bias", "d2/kernel", "d2/bias")}
LAYERS = {f"{layer}/{side}" for layer in ("d1", "drop", "d2") for side in ("inputs", "outputs")}
X, Y = make_data()


def fit(model: Any, *callbacks: Any, **arguments: Any) -> Any:
    arguments = {"batch_size": 8, "epochs": 2, "verbose": 0, "shuffle": False, **arguments}
    return model.fit(X, Y, callbacks=list(callbacks), **arguments)


def test_a_step_shows_everything(make_hook: MakeHook, run: WrittenRun, way: dict[str, bool]) -> None:
    hook = make_hook(save_all=True)
    model = make_model(**way)
    recorder = make_recorder()
    fit(model, hook, recorder)
    hook.close()
    assert run.steps == list(range(10))
    optimizer = {"SGD/iteration:0", "SGD/learning_rate:0"} | {
        f"SGD/net_{name}_momentum:0" for name in ("d1_kernel", "d1_bias", "d2_kernel", "d2_bias")
    }
    numbers = {"loss", "mae", "batch"}
    batch = {"inputs", "labels", "predictions"}
    for step in run.steps:
        values = run.values(step)
        assert (
            set(values)
            == WEIGHTS
            | GRADIENTS
            | LAYERS
            | {name for name in values if name.lower().startswith("sgd")}
            | numbers
            | batch
        )
        assert {name.lower() for name in optimizer} <= {name.lower() for name in values}
        for name, expected in zip((KERNEL, BIAS), recorder.weights[step], strict=False):
            np.testing.assert_array_equal(values[name], expected)
        for name, expected in recorder.logs[step].items():
            assert values[name].tolist() == [pytest.approx(expected)]
        rows = slice(step % 5 * 8, step % 5 * 8 + 8)
        np.testing.assert_array_equal(values["inputs"], X[rows])
        np.testing.assert_array_equal(values["labels"], Y[rows])
        np.testing.assert_array_equal(values["predictions"], values["d2/outputs"])
        np.testing.assert_array_equal(values["drop/outputs"], values["d2/inputs"])
    collections = run.collections()["collections"]
    assert set(collections["gradients"]["tensor_names"]) == GRADIENTS
    assert set(collections["losses"]["tensor_names"]) == {"loss"}
    assert set(collections["metrics"]["tensor_names"]) == {"mae", "batch"}


def test_gradients_are_those_of_a_tape(make_hook: MakeHook, run: WrittenRun, main_way: dict[str, bool]) -> None:
    hook = make_hook(include_collections=["gradients", "weights", "biases", "layers"])
    model = make_model(**main_way)
    before = [variable.numpy() for variable in model.trainable_variables]
    fit(model, hook, epochs=1)
    again = make_model()
    for step in run.steps:
        values = run.values(step)
        again.set_weights(before)
        with tf.GradientTape() as tape:
            # The dropout of the step itself, out of what its layer let through.
            kept = values["drop/outputs"] != 0
            hidden = again.get_layer("d1")(X[step * 8 : step * 8 + 8])
            output = again.get_layer("d2")(hidden * kept * 2.0)
            loss = tf.reduce_mean((output - Y[step * 8 : step * 8 + 8]) ** 2)
        expected = tape.gradient(loss, again.trainable_variables)
        for variable, gradient in zip(again.trainable_variables, expected, strict=True):
            np.testing.assert_allclose(values[f"gradients/{variable.path}Grad"], gradient, rtol=1e-4, atol=1e-6)
        before = [values[f"{v.path.split('/')[1]}/weights/{v.path}:0"] for v in model.trainable_variables]


def test_training_is_the_same_with_a_hook(make_hook: MakeHook, main_way: dict[str, bool]) -> None:
    bare = make_model(**main_way)
    bare_history = fit(bare, epochs=1).history
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=3))
    hooked = make_model(**main_way)
    history = fit(hooked, hook, epochs=1).history
    # XLA may compute in another order where a function has more outputs.
    rtol, atol = (1e-5, 1e-7) if main_way.get("jit_compile") else (0.0, 0.0)
    for name, values in bare_history.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-6)
    for mine, theirs in zip(hooked.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
    assert int(hooked.optimizer.iterations.numpy()) == int(bare.optimizer.iterations.numpy())


def test_modes_and_steps_are_keras_own(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=2))
    model = make_model(**quick_way_without_xla)
    history = fit(model, hook, validation_data=(X[:16], Y[:16]), epochs=1)
    model.evaluate(X[:16], Y[:16], batch_size=8, callbacks=[hook], verbose=0)
    model.predict(X[:16], batch_size=8, callbacks=[hook], verbose=0)
    hook.close()
    indexes = {step: run.index(step)["meta"] for step in run.steps}
    found = [(step, meta["mode"], meta["mode_step"]) for step, meta in indexes.items()]
    # Five batches of training, two of validation, at whose end the epoch is saved, two of evaluate, two of predict.
    trained = [(0, "TRAIN", 0), (2, "TRAIN", 2), (4, "TRAIN", 4)]
    assert found == [*trained, (5, "EVAL", 0), (6, "EVAL", 1), (7, "EVAL", 2), (9, "PREDICT", 0)]
    assert set(run.values(5)) == {"loss", "mae", "batch"}
    assert set(run.values(6)) == {"loss", "mae", "batch", "val_loss", "val_mae"}
    assert set(run.values(9)) == {"batch"}
    assert run.values(6)["batch"].tolist() == [0]
    assert run.values(6)["loss"].tolist() == [pytest.approx(history.history["loss"][0], rel=1e-12)]
    assert run.collections()["collections"]["losses"]["tensor_names"] == ["loss", "val_loss"]


def test_a_validation_step_is_not_visible_before_its_epoch_has_ended(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    """There its loss is replaced by that of the training; a rule would judge the one or the other, as time has it."""
    hook = make_hook()
    seen: list[tuple[str, list[int]]] = []

    class Reader(keras.callbacks.Callback):
        def on_test_end(self, logs: Any = None) -> None:
            seen.append(("validation", run.steps))

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(("epoch", run.steps))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 0:
                seen.append(("batch", run.steps))

    model, reader = make_model(**quick_way_without_xla), Reader()
    fit(model, hook, reader, validation_data=(X[:16], Y[:16]), batch_size=20)
    assert seen == [
        ("batch", [0]),
        ("validation", [0, 1]),
        ("epoch", [0, 1, 2]),
        ("batch", [0, 1, 2, 3]),
        ("validation", [0, 1, 2, 3, 4]),
        ("epoch", [0, 1, 2, 3, 4, 5]),
    ]
    seen.clear()
    model.evaluate(X[:16], Y[:16], batch_size=20, callbacks=[hook, reader], verbose=0)
    assert seen == [("validation", [0, 1, 2, 3, 4, 5, 6])]


def test_predict_returns_what_it_did_and_shows_it(
    make_hook: MakeHook, run: WrittenRun, quick_way: dict[str, bool]
) -> None:
    hook = make_hook(save_all=True)
    model = make_model(**quick_way)
    expected = model.predict(X, batch_size=20, verbose=0)
    np.testing.assert_array_equal(model.predict(X, batch_size=20, callbacks=[hook], verbose=0), expected)
    saved = np.concatenate([run.values(step)["predictions"] for step in run.steps])
    np.testing.assert_array_equal(saved, expected)
    assert GRADIENTS.isdisjoint(run.values(0))
    assert set(run.values(0)) > WEIGHTS


def test_evaluate_returns_what_it_did(make_hook: MakeHook, run: WrittenRun, quick_way: dict[str, bool]) -> None:
    hook = make_hook(save_all=True)
    model = make_model(**quick_way)
    expected = model.evaluate(X, Y, batch_size=20, verbose=0, return_dict=True)
    found = model.evaluate(X, Y, batch_size=20, verbose=0, return_dict=True, callbacks=[hook])
    assert found == pytest.approx(expected)
    last = run.values(1)
    assert {name: last[name].tolist() for name in expected} == {
        name: [pytest.approx(value)] for name, value in expected.items()
    }


def test_a_step_with_nothing_due_runs_the_very_function_of_keras(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=4))
    model = make_model()
    model.make_train_function()
    own, traces = model.train_function, []

    def counting(data: Any, step: Any = model.train_step) -> Any:
        traces.append(tf.executing_eagerly())
        return step(data)

    object.__setattr__(model, "train_step", counting)
    recorder = make_recorder()
    fit(model, hook, recorder)
    assert all(function is own for function in recorder.functions)
    # Keras' own function was made of the method before; TensorFlow traces a function twice that makes variables.
    assert traces in ([False], [False, False])
    # The last one is the end of the second epoch.
    assert run.steps == [0, 4, 8, 9]


def test_only_what_is_due_is_taken_out_of_the_step(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    hook = make_hook(include_collections=["gradients", "custom"])
    hook.get_collection("gradients").save_config = smd.SaveConfig(save_interval=2)
    hook.get_collection("custom").include("d1/outputs")
    hook.get_collection("custom").save_config = smd.SaveConfig(save_interval=3)
    fit(make_model(**quick_way_without_xla), hook, epochs=1)
    numbers = {"loss", "mae", "batch"}
    expected = [GRADIENTS | {"d1/outputs"}, set(), GRADIENTS, {"d1/outputs"}, GRADIENTS]
    assert [set(run.values(step)) - numbers for step in run.steps] == expected


def test_collections_are_named_in_lists_of_lists(make_hook: MakeHook) -> None:
    hook = make_hook(include_collections=[["weights", ["biases"]], "gradients"])
    assert hook.include_collections[:3] == ["weights", "biases", "gradients"]


def test_optimizer_variables_join_no_other_collection(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["biases", "custom"])
    hook.get_collection("custom").include("momentum")
    fit(make_eager_model(), hook, epochs=1, batch_size=20)
    assert run.steps == [0, 1]
    assert {name for step in run.steps for name in run.values(step) if "momentum" in name or "sgd" in name} == set()


def test_the_layers_of_a_collection(make_hook: MakeHook, run: WrittenRun) -> None:
    model = make_eager_model()
    hook = make_hook(include_collections=["mine"])
    mine = hook.get_collection("mine")
    mine.add_keras_layer(model.get_layer("d1"), inputs=True, outputs=False)
    mine.add_keras_layer(model.get_layer("d2"))
    fit(model, hook, epochs=1, batch_size=40)
    assert set(run.values(0)) - {"loss", "mae", "batch"} == {"d1/inputs", "d2/outputs"}


def test_reductions_are_numpys(make_hook: MakeHook, run: WrittenRun) -> None:
    config = smd.ReductionConfig(reductions=["std"], abs_norms=["l1"], save_shape=True)
    hook = make_hook(include_collections=["weights"], reduction_config=config)
    model = make_eager_model()
    recorder = make_recorder()
    fit(model, hook, recorder, epochs=1, batch_size=40)
    values = run.values(0)
    assert values[f"smdebug/reductions/std/{KERNEL}"] == pytest.approx(recorder.weights[0][0].std())
    # As upstream's Keras hook has it, the norm of a matrix is its largest column sum.
    largest_column = np.abs(recorder.weights[0][0]).sum(axis=0).max()
    assert values[f"smdebug/reductions/abs_l1/{KERNEL}"] == pytest.approx(largest_column)
    assert KERNEL not in values
    assert [4, 5] in [entry["shape"] for entry in run.index(0)["shape_payload"]]


def test_a_script_adds_values_of_its_own(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook()

    class Saving(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            hook.save_scalar("doubled", 2 * logs["loss"])
            hook.save_tensor("mine", tf.constant([1.0, batch]))

    fit(make_eager_model(), hook, Saving(), epochs=1, batch_size=20)
    hook.close()
    for step in range(2):
        values = run.values(step)
        assert values["scalar/doubled"] == pytest.approx(2 * values["loss"])
    assert [run.values(step)["mine"].tolist() for step in range(2)] == [[1.0, batch] for batch in range(2)]


def test_tensorboard_has_a_graph_of_each_mode(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(export_tensorboard=True)
    x, y = make_data()
    make_model().fit(x, y, epochs=2, verbose=0, validation_data=(x, y), callbacks=[hook])
    hook.close()
    graphs = dict.fromkeys(("TRAIN", "EVAL"), 0)
    for mode in graphs:
        for path in (run.path / "tensorboard" / mode).iterdir():
            for event in tf.compat.v1.train.summary_iterator(str(path)):
                if event.graph_def:
                    graphs[mode] += 1
                    assert tf.compat.v1.GraphDef.FromString(event.graph_def).versions.producer > 0
    assert graphs == {"TRAIN": 1, "EVAL": 1}


def test_scalars_of_an_epochs_end_join_the_next_saved_step(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=100))

    class Saving(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            hook.save_scalar(f"epoch_{epoch}", epoch)

    fit(make_eager_model(), hook, Saving(), epochs=2, batch_size=20)
    # Each epoch has two batches, and saves its means with its last one.
    assert run.steps == [0, 1, 3]
    assert {name for name in run.values(3) if "scalar" in name} == {"scalar/epoch_0"}
    hook.close()
    assert {name for name in run.values(3) if "scalar" in name} == {"scalar/epoch_0", "scalar/epoch_1"}


def test_several_steps_an_execution_show_the_last(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)
    model = make_model(steps_per_execution=2)
    fit(model, hook, epochs=1)
    np.testing.assert_array_equal(run.values(0)["inputs"], X[8:16])
    # Five batches are three executions, the last of one batch.
    assert run.steps == [0, 1, 2]


def test_a_model_compiled_again_is_captured_with_its_new_optimizer(
    make_hook: MakeHook, run: WrittenRun, quick_way_without_xla: dict[str, bool]
) -> None:
    hook = make_hook(include_collections=["optimizer_variables", "gradients"])
    model = make_model(**quick_way_without_xla)
    fit(model, hook, epochs=1, batch_size=20)
    model.compile(loss="mae", optimizer=keras.optimizers.Adam(0.01), **quick_way_without_xla)
    model.get_layer("d1").trainable = False
    model.compile(loss="mae", optimizer=keras.optimizers.Adam(0.01), **quick_way_without_xla)
    fit(model, hook, epochs=1, batch_size=20)
    last = run.values(3)
    assert "adam/iteration:0" in last or any(name.startswith("adam") for name in last)
    assert {name for name in last if name.startswith("gradients")} == {name for name in GRADIENTS if "d2" in name}
