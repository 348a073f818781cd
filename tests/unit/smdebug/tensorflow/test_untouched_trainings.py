"""Tests of unmodified trainings in this process: hooks, and capture limits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.tensorflow.untouched.zero_script_change import KerasWatch, watch_keras, watch_tapes
from tests.unit.smdebug.scripts import WriteConfig
from tests.unit.smdebug.tensorflow.frameworks import keras, tf
from tests.unit.smdebug.written_run import WrittenRun


@pytest.mark.slow
def test_a_list_of_callbacks_of_the_scripts_own_counts_no_step_twice(
    capture: KerasWatch, monkeypatch: pytest.MonkeyPatch, run: WrittenRun
) -> None:
    class WatchedList(keras.callbacks.CallbackList):
        pass

    monkeypatch.setattr("smdebug.tensorflow.untouched.zero_script_change._capture", capture)
    watch_keras(WatchedList)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    own = keras.callbacks.History()
    for params in ({}, {"epochs": 1}):
        callbacks = WatchedList([[own]], add_history=True, model=model, **params)
        assert callbacks.callbacks == [own, smd.get_hook()]
        model.fit(np.ones((4, 4)), np.ones((4, 2)), batch_size=2, verbose=0, callbacks=callbacks)
    hook = smd.get_hook()
    assert hook is not None
    assert hook.step == 3


@pytest.fixture
def capture(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> Iterator[KerasWatch]:
    """What watches a process, without its watching of this one."""
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", config())
    smd.del_hook()
    watching = KerasWatch()
    yield watching
    hook = smd.get_hook()
    if hook is not None:
        hook.close()
    smd.del_hook()


def test_the_hook_of_the_job_comes_with_the_first_training(capture: KerasWatch) -> None:
    assert smd.get_hook() is None
    predicting: list[Any] = []
    training: list[Any] = []
    evaluating: list[Any] = []
    capture.add_callback(predicting, is_training=False)
    capture.add_callback(training, is_training=True)
    capture.add_callback(evaluating, is_training=False)
    assert predicting == []
    assert training == evaluating == [smd.get_hook()]


def test_a_hook_of_the_script_is_the_only_one(capture: KerasWatch, tmp_path: Path) -> None:
    own = smd.KerasHook(str(tmp_path / "own"))
    callbacks: list[Any] = [own]
    capture.add_callback(callbacks, is_training=True)
    other: list[Any] = []
    capture.add_callback(other, is_training=True)
    assert callbacks == [own]
    assert other == []


def test_a_hook_that_wraps_its_tapes_is_the_only_one(capture: KerasWatch, tmp_path: Path) -> None:
    own = smd.KerasHook(str(tmp_path / "own"))
    own.wrap_tape(tf.GradientTape())
    callbacks: list[Any] = []
    capture.add_callback(callbacks, is_training=True)
    assert callbacks == []


def test_a_script_that_only_asks_for_the_hook_leaves_its_training_to_it(capture: KerasWatch) -> None:
    asked = smd.get_hook(create_if_not_exists=True)
    assert asked is not None
    asked.save_scalar("mine", 1)
    callbacks: list[Any] = []
    capture.add_callback(callbacks, is_training=True)
    assert callbacks == [asked]


def test_a_hook_that_takes_over_ends_the_run_of_the_job(capture: KerasWatch, tmp_path: Path, run: WrittenRun) -> None:
    callbacks: list[Any] = []
    capture.add_callback(callbacks, is_training=True)
    own = smd.KerasHook(str(tmp_path / "own"))
    more: list[Any] = []
    capture.add_callback(more, is_training=True)
    assert more == []
    assert run.has_ended
    own.close()


def test_a_config_that_cannot_be_read_costs_the_capture_only(
    config: WriteConfig, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", config(HookParameters={"save_interval": "often"}))
    smd.del_hook()
    capture = KerasWatch()
    callbacks: list[Any] = []
    capture.add_callback(callbacks, is_training=True)
    capture.add_callback(callbacks, is_training=True)
    capture.on_push(is_new=True)
    assert callbacks == []
    assert [record.levelname for record in said.records if "often" in record.getMessage()] == ["ERROR"]


def test_a_tape_ends_well_while_another_thread_ends_the_capture(
    capture: KerasWatch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class WatchedTape(tf.GradientTape):
        pass

    hook = smd.KerasHook(str(tmp_path / "own"))
    found = iter([hook.tape_capture])
    monkeypatch.setattr(KerasWatch, "on_push", lambda *_, **__: None)
    monkeypatch.setattr(KerasWatch, "tapes", property(lambda _: next(found, None)))
    monkeypatch.setattr("smdebug.tensorflow.untouched.zero_script_change._capture", capture)
    watch_tapes(WatchedTape)
    with WatchedTape():
        pass
    assert next(found, None) is None
    hook.close()
