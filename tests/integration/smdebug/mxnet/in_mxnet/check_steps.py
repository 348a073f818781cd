"""Checks of step boundaries, and of the gradients of each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

import smdebug.mxnet as smd
from tests.integration.smdebug.mxnet.in_mxnet.small_training import MakeHook, Training

if TYPE_CHECKING:
    from tests.unit.smdebug.written_run import WrittenRun


def test_without_a_trainer_a_step_ends_when_the_next_begins(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights", "gradients"])
    hook.register_block(training.network)
    for _ in range(2):
        training.forward().backward()
        for parameter in training.parameters.values():
            parameter.set_data(parameter.data() - 0.1 * parameter.grad())
    weights = training.weights()
    assert run.steps == [0]
    training.forward()
    assert run.steps == [0, 1]
    assert (run.values(1)["dense0_weight"] == weights["dense0_weight"]).all()
    assert (run.values(1)["gradient/dense0_weight"] == training.gradients()["gradient/dense0_weight"]).all()


def test_the_last_step_is_saved_when_the_hook_closes(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights", "gradients"])
    hook.register_block(training.network)
    training.forward().backward()
    hook.close()
    assert "gradient/dense1_bias" in run.values(0)
    assert run.has_ended


def test_update_without_step(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["gradients"])
    hook.register_block(training.network)
    trainer = gluon.Trainer(training.parameters, "sgd", update_on_kvstore=False)
    training.forward().backward()
    trainer.allreduce_grads()
    trainer.update(5)
    assert run.steps == [0]


def test_a_step_waits_for_every_trainer_whose_gradients_wait(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights", "gradients"])
    hook.register_block(training.network)
    layers = [
        gluon.Trainer(training.network[number].collect_params(), "sgd", {"learning_rate": 0.1}) for number in (0, 1)
    ]
    elsewhere = gluon.nn.Dense(1)
    elsewhere.initialize()
    with autograd.record():
        loss = elsewhere(nd.ones((1, 1)))
    loss.backward()
    training.forward().backward()
    gluon.Trainer(elsewhere.collect_params(), "sgd").step(1)
    layers[0].step(5)
    assert run.steps == []
    layers[1].step(5)
    assert run.steps == [0]
    values = run.values(0)
    for name, value in {**training.weights(), **training.gradients()}.items():
        if "bias" not in name or "gradient" in name:
            np.testing.assert_array_equal(values[name], value, err_msg=name)


def test_gradients_that_no_backward_pass_of_the_step_made_are_not_saved(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights", "gradients"])
    hook.register_block(training.network)
    training.forward()  # never calls backward
    training.network(training.images)  # does not even record
    training.step()
    training.network(training.images)
    hook.close()
    has_gradients = [any("gradient" in name for name in run.values(step)) for step in run.steps]
    assert has_gradients == [False, False, True, False]


def test_gradients_that_are_added_up(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(grad_req="add"), make_hook(include_collections=["gradients"])
    hook.register_block(training.network)
    sums = []
    for _ in range(2):
        training.forward().backward()
        sums.append(training.gradients()["gradient/dense0_weight"].copy())
    training.trainer.step(10)
    training.parameters.zero_grad()
    assert run.steps == [0, 1]
    for step, expected in enumerate(sums):
        assert (run.values(step)["gradient/dense0_weight"] == expected).all()
    assert (sums[0] != sums[1]).any()


def test_frozen_parameters_have_no_gradient(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights", "gradients"])
    training.network[0].collect_params().setattr("grad_req", "null")
    hook.register_block(training.network)
    training.step()
    assert {"dense0_weight", "dense1_weight", "gradient/dense1_weight", "gradient/dense1_bias"} == set(
        run.values(0)
    ) - {"softmaxcrossentropyloss0_output_0"}


def test_parameters_that_get_their_shape_late(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(hybridize=True), make_hook(save_all=True)
    assert training.parameters["dense0_weight"].shape == (4, 0)
    hook.register_block(training.network)
    training.network.add(never_called := gluon.nn.Dense(3))
    training.network._children.popitem()
    assert never_called.weight.shape == (3, 0)
    training.step()
    assert run.values(0)["dense0_weight"].shape == (4, 3)


def test_shared_parameters_are_saved_once(make_hook: MakeHook, run: WrittenRun) -> None:
    first = gluon.nn.Dense(3, in_units=3)
    network = gluon.nn.HybridSequential()
    network.add(first, gluon.nn.Dense(3, in_units=3, params=first.params))
    network.initialize()
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_block(network)
    with autograd.record():
        loss = network(nd.ones((1, 3))).sum()
    loss.backward()
    hook.close()
    assert [entry["tensorname"] for entry in run.index(0)["tensor_payload"]] == [
        "dense0_weight",
        "gradient/dense0_weight",
        "gradient/dense0_bias",
    ]


def test_every_call_of_a_registered_block_is_a_step(make_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_hook(save_all=True)
    blocks = [gluon.nn.Dense(2), gluon.nn.Dense(3)]
    for block in blocks:
        block.initialize()
        hook.register_block(block)
    blocks[1](blocks[0](nd.ones((1, 2))))
    hook.close()
    assert "dense0_output_0" in run.values(0)
    assert "dense1_output_0" in run.values(1)
    assert {"dense0_weight", "dense1_weight"} <= set(run.values(1))


def test_what_is_saved_after_the_trainer_joins_its_step(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights"])
    hook.register_block(training.network)
    for number in range(3):
        training.step()
        hook.save_scalar("late", number)
    hook.close()
    assert run.steps == [0, 1, 2]
    for step in run.steps:
        assert run.values(step)["scalar/late"].tolist() == [step]
        assert "dense0_weight" in run.values(step)


def test_what_is_computed_after_the_trainer_belongs_to_its_step(make_hook: MakeHook, run: WrittenRun) -> None:
    training = Training()
    hook = make_hook(
        include_collections=["weights"], include_regex="output", save_config=smd.SaveConfig(save_interval=2)
    )
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    for number in range(3):
        training.step()
        assert run.steps == [0]
        found = training.network[1](training.network[0](training.images))
        training.loss_function(found, training.labels)
        weights = training.weights()
        if number == 0:
            first = weights["dense0_weight"]
    hook.close()
    assert run.steps == [0, 2]
    assert (run.values(0)["dense0_weight"] == first).all()
    assert (run.values(2)["dense0_weight"] == weights["dense0_weight"]).all()
    for step in run.steps:
        assert {"dense0_output_1", "dense1_output_1", "softmaxcrossentropyloss0_output_1"} <= set(run.values(step))
        assert "softmaxcrossentropyloss0_output_2" not in run.values(step)


def test_parameters_on_two_devices_are_saved_from_the_first(make_hook: MakeHook, run: WrittenRun) -> None:
    network = gluon.nn.Dense(2, in_units=2)
    devices = [mx.cpu(0), mx.cpu(1)]
    network.initialize(ctx=devices)
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_block(network)
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1}, update_on_kvstore=False)
    with autograd.record():
        losses = [network(nd.ones((1, 2), ctx=device)).sum() for device in devices]
    autograd.backward(losses)
    trainer.step(2)
    hook.close()
    assert run.steps == [0, 1]
    for name, value in (
        ("dense0_weight", network.weight.data(devices[0])),
        ("gradient/dense0_weight", network.weight.grad(devices[0])),
    ):
        assert (run.values(1)[name] == value.asnumpy()).all()


def test_gradients_that_a_kvstore_has_used_are_not_those_of_the_next_step(make_hook: MakeHook, run: WrittenRun) -> None:
    network = gluon.nn.Dense(2, in_units=2)
    devices = [mx.cpu(0), mx.cpu(1)]
    network.initialize(ctx=devices)
    hook = make_hook(include_collections=["weights", "gradients"])
    hook.register_block(network)
    trainer = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1})
    gradients = []
    for number in (1, 2):
        with autograd.record():
            losses = [network(number * nd.ones((1, 2), ctx=device)).sum() for device in devices]
        autograd.backward(losses)
        gradients.append(network.weight.grad(devices[0]).asnumpy().copy())
        trainer.step(2)
        assert trainer._update_on_kvstore
    network(nd.ones((1, 2)))
    # A trainer refuses gradients that are not marked as fresh: the script may use its last ones again all the same.
    trainer.step(2)
    hook.close()
    trainer.step(2)
    # The call of each device is a step, and the backward pass comes after the last of them.
    assert ["gradient/dense0_weight" in run.values(step) for step in run.steps] == [False, True, False, True, False]
    for step, expected in zip((1, 3), gradients, strict=True):
        assert (run.values(step)["gradient/dense0_weight"] == expected).all()


def test_a_resumed_job_and_save_steps(make_hook: MakeHook, run: WrittenRun) -> None:
    training = Training()
    hook = make_hook(include_collections=["weights"], save_config=smd.SaveConfig(save_interval=100, save_steps=[3]))
    hook.register_block(training.network)
    for _ in range(5):
        training.step()
    assert run.steps == [0, 3]
    assert hook.step == 4
