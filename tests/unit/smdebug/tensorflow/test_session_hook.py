"""Tests of graphs in a MonitoredTrainingSession."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.exceptions import SMDebugNotImplementedError
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.tensorflow.frameworks import tf, v1
from tests.unit.smdebug.written_run import WrittenRun

MakeHook = Callable[..., "smd.SessionHook"]
X = np.random.default_rng(0).random((8, 3)).astype(np.float32)
Y = 2 * X.sum(axis=1, keepdims=True)


@pytest.fixture
def make_session_hook(run: WrittenRun) -> Iterator[MakeHook]:
    def build(**arguments: Any) -> smd.SessionHook:
        return smd.SessionHook(str(run.path), **{"save_config": smd.SaveConfig(save_interval=1), **arguments})

    with closing_hooks(build) as make, tf.Graph().as_default():
        yield make


class Network:
    """A line through three numbers, and what training it needs."""

    def __init__(self, hook: Any = None, resource: bool = True) -> None:
        self.x, self.y = v1.placeholder(tf.float32, (None, 3), "x"), v1.placeholder(tf.float32, (None, 1), "y")
        self.kernel = v1.get_variable("kernel", (3, 1), initializer=v1.ones_initializer(), use_resource=resource)
        self.bias = v1.get_variable("bias", (1,), initializer=v1.zeros_initializer(), use_resource=resource)
        self.output = tf.add(tf.matmul(self.x, self.kernel), self.bias, name="output")
        self.loss = tf.reduce_mean((self.output - self.y) ** 2, name="my_loss")
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        if hook:
            optimizer = hook.wrap_optimizer(optimizer)
        self.step = v1.train.get_or_create_global_step()
        self.gradients = optimizer.compute_gradients(self.loss)
        self.train = optimizer.apply_gradients(self.gradients, global_step=self.step)

    def run(self, session: Any, *more: Any) -> Any:
        return session.run([self.train, *more], {self.x: X, self.y: Y})


@pytest.mark.slow
@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
def test_what_a_session_shows(make_session_hook: MakeHook, run: WrittenRun, resource: bool) -> None:
    hook = make_session_hook(
        include_collections=["weights", "biases", "gradients", "losses", "optimizer_variables", "mine"]
    )
    network = Network(hook, resource)
    losses: Any = hook.get_collection("losses")
    losses.add(network.loss)
    hook.add_to_collection("mine", network.output)
    gradients = [gradient for gradient, _ in network.gradients]
    shown = []
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        shown += [network.run(session, network.loss, network.output, *gradients)[1:] for _ in range(3)]
    hook.close()
    assert run.steps == [0, 1, 2]
    for number, (loss, output, *of_loss) in enumerate(shown):
        values = run.values(number)
        np.testing.assert_array_equal(values["my_loss:0"], loss)
        np.testing.assert_array_equal(values["output:0"], output)
        for tensor, value in zip(gradients, of_loss, strict=True):
            np.testing.assert_array_equal(values[tensor.name], value)
        assert values["kernel:0"].shape == (3, 1)
        assert {"bias:0", "kernel/Momentum:0", "bias/Momentum:0"} <= set(values)
    collections = run.collections()["collections"]
    assert collections["weights"]["tensor_names"] == ["kernel:0"]
    assert collections["losses"]["tensor_names"] == ["my_loss:0"]
    assert sorted(collections["gradients"]["tensor_names"]) == sorted(tensor.name for tensor in gradients)


def test_tensors_by_regex_and_modes(make_session_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_session_hook(include_regex="^MatMul:0", save_config=smd.SaveConfig(save_interval=2))
    network = Network(hook)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        hook.set_mode(smd.modes.TRAIN)
        for _ in range(3):
            network.run(session)
        hook.set_mode(smd.modes.EVAL)
        session.run(network.output, {network.x: X})
    hook.close()
    assert [(run.index(step)["meta"]["mode"], set(run.values(step))) for step in run.steps] == [
        ("TRAIN", {"MatMul:0"}),
        ("TRAIN", {"MatMul:0"}),
        ("EVAL", {"MatMul:0"}),
    ]


def test_a_run_is_asked_for_nothing_that_it_does_not_compute(make_session_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_session_hook(save_all=True)
    network = Network(hook)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        assert session.run(network.step) == 0
        network.run(session)
    hook.close()
    assert "my_loss:0" not in run.values(0)
    assert {"x:0", "kernel:0", "output:0"} <= set(run.values(1))


def test_losses_of_the_graph_are_found(make_session_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_session_hook()
    network = Network()
    loss = v1.losses.mean_squared_error(network.y, network.output)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        expected = network.run(session, loss)[1]
    np.testing.assert_array_equal(run.values(0)[loss.name], expected)


def test_a_loss_is_shown_though_only_the_update_is_asked_for(make_session_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_session_hook()
    network = Network(hook)
    losses: Any = hook.get_collection("losses")
    losses.add(network.loss)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(network.step)
        network.run(session)
    # What is not fed cannot be computed, and is not asked for.
    assert run.steps == [1]
    np.testing.assert_allclose(run.values(1)["my_loss:0"], ((X.sum(axis=1, keepdims=True) - Y) ** 2).mean(), atol=1e-6)


@pytest.mark.slow
def test_training_is_the_same_with_a_hook(make_session_hook: MakeHook) -> None:
    def train(hook: Any) -> Any:
        with tf.Graph().as_default():
            network = Network(hook)
            with v1.train.MonitoredTrainingSession(hooks=[hook] if hook else []) as session:
                for _ in range(4):
                    network.run(session)
                return session.run(network.kernel)

    np.testing.assert_array_equal(train(make_session_hook(save_all=True)), train(None))


def test_there_is_no_estimator(tmp_path: Path) -> None:
    with pytest.raises(SMDebugNotImplementedError, match=r"no estimators.*KerasHook"):
        smd.EstimatorHook(str(tmp_path))


def test_what_a_run_fetches_is_worked_out_once(
    make_session_hook: MakeHook, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smdebug.tensorflow.steps.graph import FetchedGraph

    found, calls = FetchedGraph.get_computed, []

    def count(*arguments: Any) -> Any:
        calls.append(arguments)
        return found(*arguments)

    monkeypatch.setattr(FetchedGraph, "get_computed", count)
    hook = make_session_hook(include_collections=["weights", "mine"])
    network = Network(hook)
    hook.add_to_collection("mine", network.loss)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        for _ in range(5):
            # A list of its own at each run, of the same operations.
            network.run(session, network.output)
        known = len(calls)
        assert known <= 2
        hook.add_to_collection("mine", network.output)
        network.run(session, network.output)
        # Another question has another answer.
        session.run(network.loss, {network.x: X, network.y: Y})
    hook.close()
    assert known < len(calls) <= 4
    assert [network.output.name in run.values(step) for step in (4, 5, 6)] == [False, True, True]
    assert "kernel:0" in run.values(5)
    assert "bias/Momentum:0" not in run.values(6)


def test_what_is_fetched_is_there_once_by_each_name(tmp_path: Path) -> None:
    from smdebug.tensorflow.steps.graph import NamedTensors

    with tf.Graph().as_default():
        one = tf.constant([1.0, 2.0])
        with v1.Session() as session:
            found = session.run({"all": NamedTensors({"a": one, "b": one + 1, "again": one}), "none": NamedTensors({})})
    assert {name: list(value) for name, value in found["all"].items()} == {"a": [1, 2], "b": [2, 3], "again": [1, 2]}
    assert not found["none"]


@pytest.mark.slow
def test_the_sessions_of_a_graph_are_seen_and_it_is_released(make_session_hook: MakeHook, run: WrittenRun) -> None:
    hook = make_session_hook(save_all=True)

    def evaluate() -> Any:
        with tf.Graph().as_default() as graph:
            network = Network()
            with v1.train.MonitoredTrainingSession(hooks=[hook]) as first:
                with v1.train.MonitoredTrainingSession(hooks=[hook]) as second:
                    network.run(second)
                network.run(first)
            with v1.train.MonitoredTrainingSession(hooks=[hook]) as third:
                network.run(third)
            return ref(graph)

    graphs = [evaluate() for _ in range(2)]
    gc.collect()
    assert [graph() for graph in graphs] == [None] * 2
    hook.close()
    assert run.steps == list(range(6))


def test_steps_that_save_nothing_are_counted_in_their_mode(make_session_hook: MakeHook, run: WrittenRun) -> None:
    modes = {
        smd.modes.TRAIN: smd.SaveConfigMode(save_interval=4),
        smd.modes.EVAL: smd.SaveConfigMode(save_interval=3),
    }
    hook = make_session_hook(include_collections=["losses"], save_config=smd.SaveConfig(modes))
    network = Network(hook)
    losses: Any = hook.get_collection("losses")
    losses.add(network.loss)
    with v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
        for _ in range(3):
            for mode, steps in ((smd.modes.TRAIN, 3), (smd.modes.EVAL, 2)):
                hook.set_mode(mode)
                for _ in range(steps):
                    network.run(session)
    hook.close()
    # 3 training and 2 evaluation steps in turn: of 9 the steps 0, 4, 8 are due, of 6 the steps 0 and 3.
    assert run.steps == [0, 3, 6, 9, 12]
