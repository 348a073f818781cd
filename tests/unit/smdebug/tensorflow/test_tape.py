"""Tests of custom training loops, eager and compiled."""

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest

import smdebug.tensorflow as smd
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.tensorflow.small_models import MakeHook, make_data, make_model, make_taped_model
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

X, Y = make_data()
PATHS = ("net/d1/kernel", "net/d1/bias", "net/d2/kernel", "net/d2/bias")
WEIGHTS = {f"weights/{path}:0" for path in PATHS}
GRADIENTS = {f"gradients/{path}Grad" for path in PATHS}
BUILD = {"eager": lambda step: step, "function": lambda step: tf.function(step)}


def make_step(model: Any, hook: Any = None, optimizer: Any = None) -> Any:
    """A step as a script writes it: what it returns is what the framework itself reports."""
    optimizer = optimizer or keras.optimizers.SGD(0.1, momentum=0.5)
    optimizer.build(model.trainable_variables)
    if hook:
        hook.wrap_optimizer(optimizer)

    def step(x: Any, y: Any) -> Any:
        tape = tf.GradientTape()
        with hook.wrap_tape(tape) if hook else tape:
            output = model(x, training=False)
            loss = tf.reduce_mean((output - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients, output

    return step


def run_steps(step: Any, times: int = 4) -> Any:
    return [step(X[i * 8 : i * 8 + 8], Y[i * 8 : i * 8 + 8]) for i in range(times)]


@pytest.mark.parametrize("kind", BUILD)
def test_each_step_of_a_loop(make_hook: MakeHook, run: WrittenRun, kind: str) -> None:
    model = make_model()
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_model(model)
    weights = [model.get_weights()]
    step = BUILD[kind](make_step(model, hook))
    results = []
    for i in range(4):
        results += [step(X[i * 8 : i * 8 + 8], Y[i * 8 : i * 8 + 8])]
        weights.append(model.get_weights())
    hook.close()
    assert run.steps == [0, 2]
    layers = {f"{layer}/{side}" for layer in ("d1", "drop", "d2") for side in ("inputs", "outputs")}
    for number in run.steps:
        values = run.values(number)
        optimizer = {name for name in values if name.lower().startswith("sgd")}
        assert len(optimizer) == 6
        assert set(values) == WEIGHTS | GRADIENTS | layers | optimizer | {"loss", "inputs", "predictions"}
        loss, gradients, output = results[number]
        np.testing.assert_array_equal(values["loss"], loss)
        np.testing.assert_array_equal(values["predictions"], output)
        np.testing.assert_array_equal(values["d2/outputs"], output)
        for path, gradient, weight in zip(PATHS, gradients, weights[number], strict=True):
            np.testing.assert_array_equal(values[f"gradients/{path}Grad"], gradient)
            # Before the update, as the step used them.
            np.testing.assert_array_equal(values[f"weights/{path}:0"], weight)
        assert run.index(number)["meta"]["mode"] == "TRAIN"
    collections = run.collections()["collections"]
    assert set(collections["weights"]["tensor_names"]) == {name for name in WEIGHTS if "bias" not in name}
    assert collections["losses"]["tensor_names"] == ["loss"]


@pytest.mark.parametrize("kind", ["eager", pytest.param("function", marks=pytest.mark.nightly)])
def test_the_loop_trains_as_without_a_hook(make_hook: MakeHook, kind: str) -> None:
    bare = make_model()
    run_steps(BUILD[kind](make_step(bare)))
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=3))
    model = make_model()
    hook.register_model(model)
    run_steps(BUILD[kind](make_step(model, hook)))
    for mine, theirs in zip(model.get_weights(), bare.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_two_tapes_of_one_step_are_one_step(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["gradients"])
    first, second = tf.Variable([1.0], name="first"), tf.Variable([2.0], name="second")
    for _ in range(2):
        outer, inner = hook.wrap_tape(tf.GradientTape()), hook.wrap_tape(tf.GradientTape())
        with outer, inner:
            one, two = first**2, first * second
        outer.gradient(one, [first])
        inner.gradient(two, {"b": second, "a": tf.constant([1.0])})
    hook.close()
    assert run.steps == [0, 1]
    assert {"gradients/firstGrad", "gradients/secondGrad"} <= set(run.values(1))
    assert run.values(1)["gradients/secondGrad"] == [1.0]


def test_xla_is_reported_once_and_trains(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    model = make_model()
    hook = make_hook(save_all=True)
    run_steps(tf.function(make_step(model, hook), jit_compile=True), times=2)
    hook.close()
    assert run.steps == []
    assert len([record for record in said.records if "jit_compile" in record.message]) == 1


def test_tensors_of_the_script(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook()
    step = make_step(make_model(), hook)
    for number in range(3):
        step(X, Y)
        hook.save_tensor("mine", tf.constant(number))
        hook.save_scalar("number", number)
    hook.close()
    assert [run.values(number)["mine"].tolist() for number in range(3)] == [[0], [1], [2]]
    assert [run.values(number)["scalar/number"].tolist() for number in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize("run_eagerly", [False, True], ids=["graph", "eager"])
def test_a_wrapped_tape_inside_fit_is_part_of_the_step_of_fit(
    make_hook: MakeHook, run: WrittenRun, run_eagerly: bool
) -> None:
    hook = make_hook(include_collections=["gradients"])

    model = make_taped_model(hook)
    model.compile(optimizer="sgd", run_eagerly=run_eagerly)
    history = model.fit(X, Y, batch_size=8, verbose=0, shuffle=False, callbacks=[hook])
    hook.close()
    assert run.steps == [0, 1, 2, 3, 4]
    assert set(run.values(4)) == {"my_loss", "batch", "gradients/custom/d/kernelGrad", "gradients/custom/d/biasGrad"}
    assert run.values(4)["my_loss"] == pytest.approx(history.history["my_loss"])
    assert "my_loss" in run.collections()["collections"]["metrics"]["tensor_names"]


@pytest.mark.slow
def test_a_persistent_tape_is_freed_with_its_last_reference(make_hook: MakeHook) -> None:
    hook = make_hook()
    gc.disable()
    try:
        with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
            tape.watch(x := tf.constant(3.0))
            y = x * x
        assert float(tape.gradient(y, x)) == 6
        freed = ref(tape)
        del tape
        assert freed() is None
    finally:
        gc.enable()
