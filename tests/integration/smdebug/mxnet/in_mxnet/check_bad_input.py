"""Checks of faulty input: errors, and the tensors that are saved nevertheless."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd
from mxnet.base import MXNetError

import smdebug.mxnet as smd
from smdebug.exceptions import InvalidCollectionConfiguration, SMDebugError
from smdebug.mxnet import on_import_mxnet
from tests.integration.smdebug.mxnet.in_mxnet.small_training import MakeHook, Training

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.smdebug.written_run import WrittenRun

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int32", "int64", "uint8", "bool", "bfloat16"])
def test_types(make_hook: MakeHook, run: WrittenRun, dtype: str) -> None:
    class Cast(gluon.Block):
        def forward(self, x: Any) -> Any:
            return x.astype(BFLOAT16 if dtype == "bfloat16" else dtype)

    hook, block = make_hook(save_all=True), Cast()
    hook.register_block(block)
    result = block(nd.array([[0, 1.5, 2]]))
    hook.close()
    saved = run.values(0)["cast0_output_0"]
    if dtype == "bfloat16":
        assert saved.tolist() == [[0, 1.5, 2]]
        assert saved.dtype == np.float32
    else:
        np.testing.assert_array_equal(saved, result.asnumpy())


def test_sparse_arrays(make_hook: MakeHook, run: WrittenRun) -> None:
    network = gluon.nn.Embedding(6, 2, sparse_grad=True)
    network.initialize()
    hook = make_hook(save_all=True)
    hook.register_block(network)
    trainer = gluon.Trainer(network.collect_params(), "sgd")
    with autograd.record():
        loss = network(nd.array([1, 4])).sum()
    loss.backward()
    trainer.step(1)
    gradient = run.values(0)["gradient/embedding0_weight"]
    assert gradient.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0], [1, 1], [0, 0]]
    assert network.weight.list_grad()[0].stype == "row_sparse"


def test_a_convolution_is_saved_in_the_order_that_mxnet_shows(make_hook: MakeHook, run: WrittenRun) -> None:
    """oneDNN keeps blocks of channels together in memory."""
    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Conv2D(16, 3), gluon.nn.BatchNorm(), gluon.nn.Conv2D(16, 3))
    network.initialize()
    network.hybridize()
    hook = make_hook(save_all=True)
    hook.register_block(network)
    with autograd.record():
        result = network(nd.random.normal(shape=(4, 16, 9, 9)))
    result.backward()
    hook.close()
    values = run.values(0)
    np.testing.assert_array_equal(values["hybridsequential0_output_0"], result.asnumpy())
    for name, parameter in network.collect_params().items():
        np.testing.assert_array_equal(values[name], parameter.data().asnumpy(), err_msg=name)
        if parameter.grad_req != "null":
            np.testing.assert_array_equal(values[f"gradient/{name}"], parameter.grad().asnumpy(), err_msg=name)


def test_numpy_arrays_of_mxnet_and_empty_ones(make_hook: MakeHook, run: WrittenRun) -> None:
    class Halve(gluon.Block):
        def forward(self, x: Any) -> Any:
            return x / 2

    hook, block = make_hook(save_all=True), Halve()
    hook.register_block(block)
    with mx.util.np_shape(True), mx.util.np_array(True):
        block(mx.np.array(3.0))
        block(mx.np.zeros((0, 2)))
        hook.get_collection("all").reduction_config = smd.ReductionConfig(save_shape=True)
        block(mx.np.zeros((0, 2)))
    hook.close()
    assert run.values(0)["halve0_output_0"].shape == ()
    assert run.values(0)["halve0_output_0"] == 1.5
    assert run.steps == [0, 2]
    assert {entry["tensorname"]: entry["shape"] for entry in run.index(2)["shape_payload"]} == {
        "halve0_input_0": [0, 2],
        "halve0_output_0": [0, 2],
    }


def test_nan_and_a_block_without_parameters(make_hook: MakeHook, run: WrittenRun) -> None:
    network, hook = gluon.nn.Flatten(), make_hook(save_all=True)
    hook.register_block(network)
    network(nd.array([[np.nan, np.inf, -1]]))
    hook.close()
    np.testing.assert_array_equal(run.values(0)["flatten0_output_0"], [[np.nan, np.inf, -1]])


def test_what_is_not_a_block_and_what_is_registered_twice(make_hook: MakeHook, said: pytest.LogCaptureFixture) -> None:
    training, hook = Training(), make_hook()
    with pytest.raises(SMDebugError, match=r"takes a gluon\.Block, not int"):
        hook.register_block(3)
    for block in (training.network, training.network, training.network[0], training.loss_function):
        hook.register_block(block)
    hook.register_block(training.loss_function)
    assert sum("registered already" in record.getMessage() for record in said.records) == 3


def test_two_parameters_of_one_name(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    network = gluon.nn.Sequential()
    network.add(gluon.nn.Dense(2, prefix="same_", use_bias=False), gluon.nn.Dense(3, prefix="same_", use_bias=False))
    for layer in network:
        layer.initialize()
    hook = make_hook(save_all=True)
    hook.register_block(network)
    network(nd.ones((1, 2)))
    hook.close()
    values = run.values(0)
    assert values["same_weight"].shape == (2, 2)
    assert values["same_weight_1"].shape == (3, 2)
    assert {"same_output_0", "same_output_1"} <= set(values)
    assert sum("Two parameters are called" in record.getMessage() for record in said.records) == 1


def test_a_block_of_no_name(make_hook: MakeHook, run: WrittenRun) -> None:
    network, hook = gluon.nn.Dense(2, prefix=""), make_hook(save_all=True)
    network.initialize()
    hook.register_block(network)
    network(nd.ones((1, 2)))
    hook.close()
    assert set(run.values(0)) == {"weight", "bias", "dense_input_0", "dense_output_0"}


def test_a_collection_that_selects_nothing(make_hook: MakeHook) -> None:
    training, hook = Training(), make_hook(include_collections=["mine"])
    hook.get_collection("mine")
    hook.register_block(training.network)
    with pytest.raises(InvalidCollectionConfiguration, match="mine"):
        training.forward()


def test_a_failure_of_the_training_is_raised_where_the_training_meets_it(make_hook: MakeHook, run: WrittenRun) -> None:
    """MXNet raises what failed in the background once: whoever waits first gets it, and nobody after."""

    class Fails(gluon.Block):
        def forward(self, x: Any) -> Any:
            return nd.random.normal(scale=-1, shape=x.shape) + x

    network, hook = gluon.nn.Sequential(), make_hook(save_all=True)
    network.add(Fails(), gluon.nn.Dense(2))
    network.initialize()
    hook.register_block(network)
    with pytest.raises(MXNetError, match="scale parameter in gaussian has to be positive"):
        network(nd.ones((1, 2)))
    hook.close()
    assert run.has_ended


def test_a_call_that_fails_leaves_the_network_compiled(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(hybridize=True), make_hook(save_all=True)
    hook.register_block(training.network)
    training.step()
    with pytest.raises(Exception, match=r"(?i)shape"):
        training.network(nd.ones((5, 7)))
    hook.close()
    assert all(block._active for block in (training.network, *training.network))


def test_a_folder_that_cannot_be_written(make_hook: MakeHook, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    training = Training()
    hook = smd.Hook(out_dir=str(tmp_path / "file" / "run"), save_all=True, save_config=smd.SaveConfig(save_interval=1))
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    before = training.network[1].weight.shape
    for _ in range(3):
        training.step()
    hook.close()
    assert before != training.network[1].weight.shape
    assert any("Training goes on" in record.getMessage() for record in said.records)


def test_another_release(make_hook: MakeHook, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(mx, "__version__", "2.0.0b1")
    call = gluon.Block.__call__
    on_import_mxnet.install()
    make_hook()
    assert gluon.Block.__call__ is call
    assert sum("MXNet 2.0.0b1 is not supported by this hook" in record.getMessage() for record in said.records) == 1


def test_nothing_registered_is_called(make_hook: MakeHook, said: pytest.LogCaptureFixture) -> None:
    hook = make_hook()
    hook.register_block(Training().network)
    hook.close()
    assert any("no registered block was called" in record.getMessage() for record in said.records)


def test_a_part_of_a_hybridized_block(make_hook: MakeHook, run: WrittenRun, said: pytest.LogCaptureFixture) -> None:
    """It is called once, with symbols, to be compiled: that is not a step."""
    training, hook = Training(hybridize=True), make_hook(save_all=True)
    hook.register_block(training.network[0])
    training.step()
    hook.close()
    assert run.steps == []
    assert any("part of a hybridized block" in record.getMessage() for record in said.records)


def test_a_closed_hook_leaves_nothing_behind(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(save_all=True)
    hook.register_block(training.network)
    training.step()
    hook.close()
    assert not training.network._forward_pre_hooks
    training.step()
    assert run.steps == [0]


def test_a_child_process_writes_nothing(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(save_all=True)
    hook.register_block(training.network)
    training.step()
    child = os.fork()
    if child == 0:
        hook.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not run.has_ended
    training.step()
    assert run.steps == [0, 1]


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda block: pickle.loads(pickle.dumps(block))])
@pytest.mark.parametrize("backward", [False, True], ids=["in a step", "between steps"])
def test_a_copy_of_a_registered_block_is_left_alone(
    make_hook: MakeHook, run: WrittenRun, copy_of: Callable[[Any], Any], backward: bool
) -> None:
    # MXNet itself can copy no network that it has compiled.
    training, hook = Training(), make_hook(save_all=True)
    hook.register_block(training.network)
    loss = training.forward()
    if backward:
        loss.backward()
        training.trainer.step(5)
    copied = copy_of(training.network)
    expected = training.network(training.images).asnumpy() if backward else None
    result = copied(training.images)
    assert result.shape == (5, 2)
    assert expected is None or (result.asnumpy() == expected).all()
    hook.close()
    assert run.steps == ([0, 1] if backward else [0])
    assert "dense1_output_1" not in run.values(run.steps[-1])


def test_a_failure_of_the_training_met_by_a_change_of_mode(make_hook: MakeHook) -> None:
    training, hook = Training(), make_hook(include_collections=["weights"])
    hook.register_block(training.network)
    training.network(training.images)
    training.network[0].weight.set_data(nd.random.normal(scale=-1, shape=(4, 3)))
    with pytest.raises(MXNetError, match="scale parameter in gaussian has to be positive"):
        hook.set_mode(smd.modes.EVAL)


def test_memory_of_steps_is_given_back(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(save_all=True)
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    training.step()
    gc.collect()
    before = sum(isinstance(found, nd.NDArray) for found in gc.get_objects())
    for _ in range(5):
        training.step()
    gc.collect()
    assert sum(isinstance(found, nd.NDArray) for found in gc.get_objects()) <= before + 2
