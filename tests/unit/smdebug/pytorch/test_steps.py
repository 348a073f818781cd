"""Tests of steps: which are saved, how they are counted, and when each is visible."""

from typing import Any

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.pytorch.tensors.device_queue import DeviceQueue
from smdebug.writing.step_writer import StepWriter
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


def test_save_steps_are_added_to_the_interval(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=4, start_step=3, end_step=9, save_steps=[5]))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(10)
    assert run.steps == [4, 5, 8]


def test_a_collection_changed_between_steps_with_nothing_due_is_saved_at_the_next(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"], save_config=smd.SaveConfig(save_interval=100))
    hook.register_module(training.model)
    training.step(3)
    hook.get_collection("weights").save_config = smd.SaveConfig(save_interval=1)
    training.step(2)
    hook.close()
    assert run.steps == [0, 3, 4]


def test_a_script_that_saves_after_its_step_has_its_next_steps_open_until_the_following_one_begins(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"], save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    training.step()
    assert run.steps == [0]
    hook.save_scalar("late", 0.0)
    training.step()
    assert run.steps == [0]
    hook.save_scalar("late", 1.0)
    training.step()
    assert run.steps == [0, 1]
    assert run.values(1)["scalar/late"] == 1.0
    hook.close()


def test_what_is_computed_after_the_optimizer_belongs_to_the_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_regex=["accuracy", "fc1_output"], save_config=smd.SaveConfig(save_interval=2))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    for number in range(3):
        images, labels = training.batch()
        training.model(images).sum().backward()
        training.optimizer.step()
        hook.record_tensor_value("accuracy", torch.tensor(float(number)))
        training.loss(training.model.fc2(training.model.fc1(images)), labels)
    hook.close()
    assert run.steps == [0, 2]
    for step in run.steps:
        values = run.values(step)
        assert values["accuracy_output_0"] == step
        assert {"CrossEntropyLoss_output_0", "fc1_output_0", "fc1_output_1"} <= set(values)


def test_nothing_is_added_to_a_step_whose_file_could_not_be_written(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    hook = make_hook(include_regex=["accuracy", "fc1"], save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    with monkeypatch.context() as full:
        full.setattr("smdebug.writing.step_writer.write_whole_file", fail)
        training.step()
    hook.record_tensor_value("accuracy", torch.ones(1))
    training.step()
    hook.close()
    assert run.steps == [1]


def test_a_tensor_that_is_given_while_nothing_is_due_is_said_to_be_left_out_once(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_collections=["weights"], save_config=smd.SaveConfig(save_interval=100))
    hook.register_module(training.model)
    training.model.act.register_forward_hook(lambda *_: hook.save_tensor("mine", torch.ones(2), "weights"))
    said.set_level("INFO")
    training.step(4)
    hook.close()
    assert "mine" in run.values(0)
    (left_out,) = [each.getMessage() for each in said.records if "mine" in each.getMessage()]
    assert left_out.startswith("mine is not saved at step 1 of mode GLOBAL: ")


def test_a_tensor_that_is_given_is_saved_whenever_any_collection_is(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["losses"], save_config=smd.SaveConfig(save_interval=100))
    hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=2)
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    for number in range(5):
        hook.save_tensor("labels", torch.tensor([number]))
        training.step()
    hook.close()
    assert {step: run.values(step)["labels"].tolist() for step in run.steps} == {0: [0], 2: [2], 4: [4]}


def test_every_thousand_steps_have_an_index_folder_of_their_own(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(
        save_config=smd.SaveConfig(save_interval=10**9, save_steps=[1001]), include_collections=["weights"]
    )
    hook.register_module(training.model)
    hook.recorder.counters.step = 1000
    hook.recorder.counters.mode_steps[smd.modes.GLOBAL] = 1000
    training.step()
    assert (run.path / "index/000000001/000000001001_worker_0.json").exists()
    assert (run.path / "events/000000001001/000000001001_worker_0.tfevents").exists()


def test_steps_that_save_nothing_are_counted_in_their_mode(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    config = smd.SaveConfig(
        {
            smd.modes.TRAIN: smd.SaveConfigMode(save_interval=4),
            smd.modes.EVAL: smd.SaveConfigMode(save_steps=[3], start_step=1000),
        }
    )
    hook = make_hook(include_collections=["weights"], save_config=config)
    hook.register_module(training.model)
    for _ in range(2):
        hook.set_mode(smd.modes.TRAIN)
        training.step(5)
        hook.set_mode(smd.modes.EVAL)
        training.step(3)
    hook.get_collection("weights").save_config = smd.SaveConfig(save_steps=[8], start_step=1000)
    hook.set_mode(smd.modes.TRAIN)
    training.step()
    hook.save_tensor("between", np.ones(2))
    training.step()
    hook.close()
    places = [(run.index(step)["meta"]["mode"], run.index(step)["meta"]["mode_step"]) for step in run.steps]
    assert places == [("TRAIN", 0), ("TRAIN", 4), ("TRAIN", 8), ("EVAL", 3)]
    assert hook.mode_steps[smd.modes.TRAIN] == 11


def test_each_device_is_waited_for_before_its_copies_are_written(
    run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may be on several devices; without a GPU, the one here is the CPU."""
    waited: list[torch.device] = []
    empty = torch.empty

    def allocate(shape: torch.Size, *, pin_memory: bool, **options: Any) -> torch.Tensor:
        assert pin_memory
        return empty(shape, **options)

    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr(torch, "empty", allocate)
    queue = DeviceQueue()
    queue.add_copy("a", torch.ones(3))
    writer = StepWriter(str(run.path), "worker_0", 0)
    queue.write(writer)
    assert waited == [torch.device("cpu")]
    queue.write(writer)
    assert len(waited) == 1, "nothing was queued"
    writer.close()
    assert run.values(0)["a"].tolist() == [1, 1, 1]


def test_a_step_that_a_cuda_graph_records_is_not_seen(
    make_hook: MakeHook, training: Training, run: WrittenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = make_hook(save_all=True, save_config=smd.SaveConfig(save_interval=1))
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step(2)
    with monkeypatch.context() as recording:
        # What torch.cuda.graph() does to these two; nothing is recorded without a GPU.
        recording.setattr(torch.cuda, "is_initialized", lambda: True)
        recording.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        training.step()
    training.step()
    hook.close()
    assert run.steps == [0, 1, 2]
    assert len({frozenset(run.values(step)) for step in run.steps}) == 1
