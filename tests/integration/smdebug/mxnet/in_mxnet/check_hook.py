"""Checks of saved tensors of a Gluon training, against Gluon's own values."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd

import smdebug.mxnet as smd
from smdebug.trials import create_trial
from tests.integration.smdebug.mxnet.in_mxnet.small_training import EVERY_STEP, MakeHook, Training
from tests.interop.recorded_runs import read_answers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.smdebug.written_run import WrittenRun

EVAL, TRAIN = smd.modes.EVAL, smd.modes.TRAIN


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("hybridize", [False, True])
def test_everything_is_saved_as_gluon_has_it_and_named_as_upstream_did(
    make_hook: MakeHook, run: WrittenRun, hybridize: bool
) -> None:
    training, hook = Training(hybridize=hybridize), make_hook(save_all=True)
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    hook.set_mode(TRAIN)
    for step in range(3):
        training.step()
        # The newest step is there before the next one begins.
        assert run.steps == list(range(step + 1))
        values = run.values(step)
        same(values, training.weights())
        same(values, training.gradients())
        same(values, {"softmaxcrossentropyloss0_output_0": training.loss.asnumpy()})
        same(values, {"softmaxcrossentropyloss0_input_1": training.labels.asnumpy()})
        same(values, {"hybridsequential0_input_0": training.images.asnumpy()})
        assert (values["dense0_relu_output_0"] == values["dense1_input_0"]).all()
        assert (np.maximum(values["dense0_relu_input_0"], 0) == values["dense0_relu_output_0"]).all()
    assert set(values) == set(read_answers()["mx_save_all"]["tensor_names"])
    hook.close()
    recorded = read_answers()["mx_save_all"]["collections"]
    for name, collection in run.collections()["collections"].items():
        assert collection["tensor_names"] == recorded[name]["tensor_names_in_file"], name
        assert collection["include_regex"] == recorded[name]["include_regex"], name


def test_a_hybridized_network_computes_the_same_with_and_without_a_hook(make_hook: MakeHook, run: WrittenRun) -> None:
    bare = Training(hybridize=True)
    for _ in range(6):
        bare.step()
    with mx.name.NameManager():
        captured, hook = Training(hybridize=True), make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_block(captured.network)
    for _ in range(6):
        captured.step()
    assert run.steps == [0, 2, 4]
    for name, value in bare.weights().items():
        np.testing.assert_allclose(captured.weights()[name], value, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("outside", [gluon.nn.HybridSequential, gluon.nn.Sequential])
def test_random_numbers_are_drawn_in_the_order_of_a_run_without_a_hook(
    make_hook: MakeHook, run: WrittenRun, outside: Callable[[], Any]
) -> None:
    """The last layer gets its values, of which the first batch decides how many, before the dropout draws."""
    weights = []
    for captured in (False, True):
        mx.random.seed(0)
        inside, network = gluon.nn.HybridSequential(), outside()
        inside.add(gluon.nn.Dense(8), gluon.nn.Dropout(0.5), gluon.nn.Dense(2))
        network.add(inside)
        network.initialize(mx.init.Xavier())
        compiled = network if isinstance(network, gluon.HybridBlock) else inside
        compiled.hybridize()
        if captured:
            make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=2)).register_block(network)
        for _ in range(3):
            with autograd.record():
                network(nd.ones((4, 3)))
        assert all(block._active for block in (inside, *inside))
        weights.append([parameter.data().asnumpy() for parameter in network.collect_params().values()])
    assert any("dropout" in name for name in run.values(0))
    for bare, captured in zip(*weights, strict=True):
        np.testing.assert_array_equal(captured, bare)
    compiled.export(str(run.path.with_name("model")))


def test_a_network_of_which_every_step_was_saved_can_be_exported(make_hook: MakeHook, tmp_path: Path) -> None:
    training, hook = Training(hybridize=True), make_hook(save_all=True)
    hook.register_block(training.network)
    training.step()
    training.network.export(str(tmp_path / "model"))
    assert (tmp_path / "model-symbol.json").exists()
    assert all(block._active for block in (training.network, *training.network))


def test_inner_blocks_are_left_compiled_where_nothing_of_them_is_saved(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(hybridize=True), make_hook(include_collections=["weights", "gradients"])
    hook.register_block(training.network)
    training.step()
    assert training.network._cached_op is not None
    same(run.values(0), {name: value for name, value in training.weights().items() if "weight" in name})
    same(run.values(0), training.gradients())


def test_a_step_that_saves_nothing_leaves_no_hook_in_any_block(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    training.step()
    training.forward()
    assert not any(block._forward_hooks for block in (training.network, *training.network, training.loss_function))
    training.step()
    assert run.steps == [0, 2]


def test_modes_and_their_steps(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["gradients", "weights"])
    hook.register_block(training.network)
    hook.register_block(training.loss_function)
    for mode in (TRAIN, TRAIN, EVAL, TRAIN):
        hook.set_mode(mode)
        if mode is TRAIN:
            training.step()
        else:
            training.loss_function(training.network(training.images), training.labels)
    hook.close()
    trial = create_trial(str(run.path))
    assert trial.steps(mode=TRAIN) == [0, 1, 2]
    assert trial.steps(mode=EVAL) == [0]
    assert trial.tensor_names(step=2, regex="gradient") == []
    assert trial.tensor_names(step=2, regex="loss") == ["softmaxcrossentropyloss0_output_0"]
    assert trial.tensor("gradient/dense0_weight").steps() == [0, 1, 3]


def test_reductions(make_hook: MakeHook, run: WrittenRun) -> None:
    operations: dict[str, Any] = {
        "reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
        "abs_reductions": ["mean", "std"],
        "norms": ["l1", "l2"],
    }
    training = Training()
    hook = make_hook(include_collections=["weights"], reduction_config=smd.ReductionConfig(**operations))
    hook.register_block(training.network)
    training.step()
    values, weight = run.values(0), training.weights()["dense0_weight"]
    assert "dense0_weight" not in values
    expected = {
        "min": weight.min(),
        "max": weight.max(),
        "mean": weight.mean(),
        "std": weight.std(),
        "variance": weight.var(),
        "sum": weight.sum(),
        "prod": weight.prod(),
        "abs_mean": np.abs(weight).mean(),
        "abs_std": np.abs(weight).std(),
        "l1": np.abs(weight).sum(),
        "l2": np.sqrt((weight.astype(np.float64) ** 2).sum()),
    }
    for operation, number in expected.items():
        saved = values[f"smdebug/reductions/{operation}/dense0_weight"]
        assert saved.shape == (1,)
        np.testing.assert_allclose(saved, [number], rtol=1e-5, err_msg=operation)


def test_block_tensors_of_a_collection(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(hybridize=True), make_hook(include_collections=["relu", "all_of_it"])
    relu = hook.get_collection("relu")
    relu.add_block_tensors(training.network[0].act, inputs=True, outputs=False)
    all_of_it = hook.get_collection("all_of_it")
    all_of_it.add_block_tensors(training.network)
    hook.register_block(training.network)
    training.step()
    assert set(run.values(0)) == {"dense0_relu_input_0", "hybridsequential0_output_0"}


class Pair(gluon.Block):
    """Calls one layer twice and returns a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = gluon.nn.Dense(3)

    def forward(self, first: Any, others: Any) -> Any:
        return [self.layer(first), (self.layer(others[0]), None)]


def test_a_block_that_is_not_a_hybrid_one_with_lists_and_a_layer_called_twice(
    make_hook: MakeHook, run: WrittenRun
) -> None:
    pair, hook = Pair(), make_hook(save_all=True)
    pair.initialize()
    hook.register_block(pair)
    first, second = nd.ones((2, 3)), nd.zeros((2, 3))
    results = pair(first, [second])
    hook.close()
    values = run.values(0)
    blocks = {f"{name}_{kind}_{n}" for name in ("pair0", "dense0") for kind in ("input", "output") for n in (0, 1)}
    assert set(values) == blocks | {"dense0_weight", "dense0_bias"}
    same(values, {"pair0_input_1": second.asnumpy(), "pair0_output_1": results[1][0].asnumpy()})


def test_scalars_and_tensors_of_the_script(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook()
    hook.register_block(training.network)
    hook.save_scalar("before", nd.array([3.0]))
    training.forward().backward()
    hook.save_tensor("mine", training.loss, collections_to_write="losses")
    hook.save_scalar("loss", training.loss.mean())
    training.trainer.step(5)
    values = run.values(0)
    same(values, {"mine": training.loss.asnumpy(), "scalar/loss": training.loss.mean().asnumpy()})
    assert values["scalar/before"].tolist() == [3.0]


def test_tensorboard(make_hook: MakeHook, run: WrittenRun) -> None:
    training, hook = Training(), make_hook(include_collections=["weights"], export_tensorboard=True)
    hook.register_block(training.network)
    training.step()
    hook.close()
    assert list((run.path / "tensorboard" / "GLOBAL").glob("*.tfevents"))


def test_the_hook_of_the_process(make_hook: MakeHook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "debughookconfig.json"
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    assert smd.get_hook() is None
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "other"), "HookParameters": {"save_interval": "7"}}))
    hook = smd.get_hook()
    assert hook is smd.get_hook()
    assert isinstance(hook, smd.Hook)
    assert hook.out_dir == str(tmp_path / "other")
    assert hook.save_config.get_save_config(TRAIN).save_interval == 7
    hook.close()
    smd.del_hook()
    own = make_hook()
    assert smd.get_hook() is own
    assert smd.Hook.register_hook is smd.Hook.register_block
    monkeypatch.setenv("USE_SMDEBUG", "0")
    assert smd.get_hook() is None


def test_recorded_without_training_is_still_a_step_with_gradients(make_hook: MakeHook, run: WrittenRun) -> None:
    """`record(train_mode=False)` computes gradients of a network that is not being trained, e.g. for a saliency map."""
    training, hook = Training(), make_hook(include_collections=["gradients"], save_config=EVERY_STEP)
    hook.register_block(training.network)
    with autograd.record(train_mode=False):
        result = training.network(training.images)
    result.backward(train_mode=False)
    hook.close()
    same(run.values(0), training.gradients())


class Recurrent(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.words = gluon.nn.Embedding(20, 8)
            self.lstm = gluon.rnn.LSTM(6, 2, layout="NTC")
            self.last = gluon.nn.Dense(2)

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803 - the name that Gluon's own blocks give it
        return self.last(self.lstm(self.words(x)))


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_recurrent_network(make_hook: MakeHook, run: WrittenRun, hybridize: bool) -> None:
    network, hook = Recurrent(), make_hook(save_all=True)
    network.initialize()
    if hybridize:
        network.hybridize(static_alloc=True)
    hook.register_block(network)
    trainer = gluon.Trainer(network.collect_params(), "adam")
    with autograd.record():
        result = network(nd.array([[1, 2, 3], [4, 5, 6]]))
    result.backward()
    trainer.step(2)
    values = run.values(0)
    same(values, {name: parameter.data().asnumpy() for name, parameter in network.collect_params().items()})
    same(
        values, {f"gradient/{name}": parameter.grad().asnumpy() for name, parameter in network.collect_params().items()}
    )
    same(values, {"recurrent0_output_0": result.asnumpy()})
    assert values["recurrent0_lstm0_output_0"].shape == (2, 3, 6)


def test_a_worker_of_horovod_has_its_rank(
    make_hook: MakeHook, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    horovod = SimpleNamespace(is_initialized=lambda: True, rank=lambda: 2, size=lambda: 3)
    monkeypatch.setitem(sys.modules, "horovod.mxnet", horovod)
    training, hook = Training(), make_hook(include_collections=["weights"], include_workers="all")
    hook.register_block(training.network)
    training.step()
    hook.close()
    assert "dense0_weight" in run.values(0, "worker_2")
    assert run.collections("worker_2")["_meta"]["num_workers"] == 3


def test_a_loss_of_any_name_is_a_loss(make_hook: MakeHook, run: WrittenRun) -> None:
    """Upstream's regex knows losses with one digit behind their name."""
    losses = [gluon.loss.L2Loss() for _ in range(11)] + [gluon.loss.L1Loss(prefix="distance_")]
    training, hook = Training(), make_hook()
    for block in (training.network, *losses):
        hook.register_block(block)
    result = training.network(training.images)
    for loss in losses:
        loss(result, nd.zeros((5, 2)))
    hook.close()
    assert set(run.values(0)) == {f"l2loss{number}_output_0" for number in range(11)} | {"distance_output_0"}


def test_the_names_that_scripts_import() -> None:
    names = "Collection CollectionKeys Hook ReductionConfig SaveConfig SaveConfigMode create_trial del_hook get_hook "
    assert sorted(smd.__all__) == sorted([*names.split(), "modes", "set_hook"])
    assert all(getattr(smd, name) for name in smd.__all__)
