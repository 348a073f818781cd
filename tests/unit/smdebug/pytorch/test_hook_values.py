"""Tests of the hook: dtypes, scalars, values of scripts, and collections."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from crc32c import crc32c

import smdebug.pytorch as smd
from smdebug.exceptions import InvalidCollectionConfiguration, TensorUnavailableForStep
from smdebug.format.tfevent.framing import read_record
from smdebug.reading.reader import FileReader
from smdebug.trials import create_trial
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


@pytest.mark.parametrize(
    ("dtype", "stored", "true_dtype"),
    [
        (torch.float64, "float64", None),
        (torch.float16, "float16", None),
        (torch.bfloat16, "float32", "bfloat16"),
        (torch.int8, "int32", "int8"),
        (torch.int16, "int32", "int16"),
        (torch.uint8, "uint8", None),
        (torch.bool, "bool", None),
        (torch.complex64, "complex128", "complex64"),
        (torch.float8_e4m3fn, "float32", "float8_e4m3fn"),
    ],
)
def test_dtypes(
    make_hook: MakeHook, training: Training, run: WrittenRun, dtype: torch.dtype, stored: str, true_dtype: str | None
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    training.model(training.batch()[0])
    value = torch.tensor([[1, 0, 1], [0, 0, 1]]).to(dtype)
    hook.save_tensor("it", value)
    hook.close()
    (entry,) = [entry for entry in run.index(0)["tensor_payload"] if entry["tensorname"] == "it"]
    assert entry.get("dtype") == true_dtype
    found = run.values(0)["it"]
    assert found.dtype == stored
    np.testing.assert_array_equal(found.real.astype(float), [[1, 0, 1], [0, 0, 1]])


@pytest.mark.parametrize("value", [3, 2.5, True, "text", [1, 2], np.arange(3.0), torch.ones(2).t()])
def test_save_tensor_takes_what_can_be_an_array(
    make_hook: MakeHook, training: Training, run: WrittenRun, value: Any
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    training.model(training.batch()[0])
    hook.save_tensor("it", value)
    hook.close()
    found = run.values(0)["it"]
    np.testing.assert_array_equal(found, np.atleast_1d(np.asarray(value)))


def test_save_tensor_between_steps_waits_for_the_next_and_keeps_the_value(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    value = torch.zeros(2)
    hook.save_tensor("before", value, collections_to_write=["mine", "other"])
    value += 1
    training.step()
    hook.save_tensor("before", value)
    training.step()
    np.testing.assert_array_equal(run.values(0)["before"], [0, 0])
    np.testing.assert_array_equal(run.values(1)["before"], [1, 1])
    collections = run.collections()["collections"]
    assert collections["mine"]["tensor_names"] == collections["other"]["tensor_names"] == ["before"]


def test_save_tensor_after_the_last_step_adds_to_the_step_and_changes_nothing_in_it(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    hook.save_tensor("each", torch.zeros(2), collections_to_write="mine")
    training.step()
    hook.save_tensor("each", torch.ones(2), collections_to_write="mine")  # for a step that does not come
    hook.save_tensor("late", torch.ones(2), collections_to_write="late_ones")
    hook.close()
    assert run.steps == [0]
    assert {name: run.values(0)[name].tolist() for name in ("each", "late")} == {"each": [0, 0], "late": [1, 1]}
    assert run.collections()["collections"]["late_ones"]["tensor_names"] == ["late"]


def test_save_tensor_within_steps_that_are_not_due_is_of_no_later_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=4), include_collections=["weights"])
    hook.register_module(training.model)
    for number in range(5):
        training.model(training.batch()[0])
        if number % 4:
            hook.save_tensor("between", number)
    hook.close()
    assert run.steps == [0, 4]
    assert "between" not in run.values(4)


def test_a_collection_changed_after_the_only_step_is_described_as_it_is(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    hook.get_collection("weights").include("late")
    hook.close()
    assert "late" in run.collections()["collections"]["weights"]["include_regex"]


def test_scalars_of_steps_that_are_not_due_join_the_next_saved_step(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=3), include_collections=["weights"])
    hook.register_module(training.model)
    hook.save_scalar("early", 1)
    for number in range(6):
        training.step()
        hook.save_scalar("each", number, timestamp=5.0)
        hook.save_scalar(f"only_{number}", number)
    hook.close()
    # What waits at the end is saved at the newest step.
    assert run.steps == [0, 3, 5]
    assert {name for name in run.values(0) if "scalar" in name} == {"scalar/early", "scalar/each", "scalar/only_0"}
    assert {name for name in run.values(3) if "only" in name} == {"scalar/only_1", "scalar/only_2", "scalar/only_3"}
    assert set(run.values(5)) == {"scalar/each", "scalar/only_4", "scalar/only_5"}
    assert [run.values(step)["scalar/each"].tolist() for step in run.steps] == [[0], [3], [5]]


def test_a_scalar_has_the_time_that_the_script_gives_it(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    hook.save_scalar("then", 1, timestamp=5.0)
    before = time.time()
    hook.save_scalar("now", 2)
    hook.close()
    (file,) = run.path.glob("events/*/*")
    times = {event["name"]: event["timestamp"] for event in FileReader(str(file)).read_events(regex_list="scalar/")}
    assert times.pop("scalar/then") == 5.0
    assert before <= times.pop("scalar/now") <= time.time()
    assert times == {}


def test_a_change_of_mode_leaves_waiting_scalars_waiting(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(save_config={smd.modes.TRAIN: smd.SaveConfigMode(save_interval=100)})
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    hook.set_mode(smd.modes.TRAIN)
    training.step()
    training.step()
    hook.set_mode(smd.modes.EVAL)
    hook.save_scalar("waits", 1)
    assert run.steps == [0]
    training.step()
    assert set(run.values(2)) == {"CrossEntropyLoss_output_0", "scalar/waits"}


def test_scalars_that_wait_to_the_end_leave_the_newest_step_in_its_mode(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    hook.set_mode(smd.modes.TRAIN)
    training.step(3)
    hook.set_mode(smd.modes.EVAL)
    hook.save_scalar("accuracy", 1)
    hook.close()
    meta = run.index(2)["meta"]
    assert (meta["mode"], meta["mode_step"]) == ("TRAIN", 2)
    assert set(run.values(2)) == {"scalar/accuracy"}


def test_scalars_that_wait_do_not_pile_up(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook(save_config=smd.SaveConfig(start_step=100))
    hook.register_module(training.model)
    training.step()
    for number in range(50):
        hook.save_scalar("number", number)
    assert len(hook.recorder._waiting_scalars) == 1


def test_a_hook_closed_before_any_step_keeps_its_scalars_and_its_collections(
    make_hook: MakeHook, run: WrittenRun
) -> None:
    hook = make_hook()
    hook.save_scalar("alone", 4)
    hook.close()
    assert run.values(0)["scalar/alone"].tolist() == [4]
    assert run.collections()["_meta"] == {"num_workers": 1}
    assert run.has_ended


def test_record_tensor_value_is_a_loss_by_its_name(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook()
    hook.register_module(training.model)
    x, y = training.batch()
    loss = torch.nn.functional.cross_entropy(training.model(x), y)
    hook.record_tensor_value("nll_loss", loss)
    hook.record_tensor_value("other", loss)
    hook.close()
    assert set(run.values(0)) == {"nll_loss_output_0"}


def test_losses_that_are_nan_or_not_scalar_are_saved_as_they_are(make_hook: MakeHook, run: WrittenRun) -> None:
    training = Training(loss=torch.nn.CrossEntropyLoss(reduction="none"))
    hook = make_hook()
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    x, y = training.batch()
    x[0] = float("nan")
    training.loss(training.model(x), y)
    hook.close()
    loss = run.values(0)["CrossEntropyLoss_output_0"]
    assert loss.shape == (5,)
    assert np.isnan(loss[0])
    assert not np.isnan(loss[1:]).any()


def test_collections_have_their_own_steps_and_reductions(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(save_config=smd.SaveConfig(save_interval=2), include_collections=["weights", "relu", "layer"])
    relu = hook.get_collection("relu")
    relu.include("^act_output")
    relu.save_config = {smd.modes.GLOBAL: smd.SaveConfigMode(save_interval=3)}
    relu.reduction_config = smd.ReductionConfig(reductions=["max"], save_shape=True)
    layer = hook.get_collection("layer")
    layer.add_module_tensors(training.model.fc2, inputs=True)
    hook.register_module(training.model)
    training.step(4)
    assert run.steps == [0, 2, 3]
    assert set(run.values(3)) == {"smdebug/reductions/max/act_output_0"}
    assert run.index(3)["shape_payload"] == [
        {"tensorname": "act_output_0", "originalname": "act_output_0", "shape": [5, 3]}
    ]
    assert set(run.values(2)) == {"Net_fc1.weight", "Net_fc2.weight", "fc2_input_0", "fc2_output_0"}
    described = run.collections()["collections"]
    assert described["relu"]["save_config"]["TRAIN"]["save_interval"] == 2
    assert described["relu"]["tensor_names"] == ["act_output_0"]
    assert described["losses"]["save_histogram"] is False


def test_shapes_alone_need_no_event_file(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(reduction_config=smd.ReductionConfig(save_shape=True), include_collections=["weights"])
    hook.register_module(training.model)
    training.step()
    assert run.index(0)["meta"] == {"mode": "GLOBAL", "mode_step": 0}
    assert [entry["shape"] for entry in run.index(0)["shape_payload"]] == [[3, 4], [2, 3]]
    assert not (run.path / "events").exists()


def test_a_custom_collection_must_select_something(make_hook: MakeHook, training: Training) -> None:
    hook = make_hook(include_collections=["nothing"])
    hook.get_collection("nothing")
    hook.register_module(training.model)
    with pytest.raises(InvalidCollectionConfiguration, match="nothing"):
        training.step()
    hook.get_collection("nothing").include("x")
    training.step()


def test_a_refused_training_is_told_of_the_collection_alone(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    """Its model was called; that nothing is saved has another reason."""
    hook = make_hook(include_collections=["nothing"])
    hook.get_collection("nothing")
    hook.register_module(training.model)
    with pytest.raises(InvalidCollectionConfiguration, match="nothing"):
        training.step()
    hook.close()
    assert "no registered model was called" not in said.text


def test_a_collection_that_is_only_named_or_comes_late_costs_one_warning(
    make_hook: MakeHook, training: Training, run: WrittenRun, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_collections=["named", "losses"])
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    training.step()
    hook.get_collection("late")
    training.step()
    hook.get_collections()
    training.step()
    hook.close()
    texts = [text for record in said.records if "saves nothing" in (text := record.getMessage())]
    assert [text.split()[1] for text in texts] == ["named", "late"]
    assert run.steps == [0, 1, 2]


def test_regexes_that_match_no_tensor_are_told_at_the_end(
    make_hook: MakeHook, training: Training, said: pytest.LogCaptureFixture
) -> None:
    hook = make_hook(include_regex=["relu_ouput"], include_collections=["gradients", "own", "found"])
    hook.get_collection("own").include("convolution")
    hook.get_collection("found").include("Loss")
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    # No step has gradients, which is no fault of the built-in regex.
    with torch.no_grad():
        training.model(torch.ones(2, 4))
        training.loss(torch.ones(2, 2), torch.ones(2, dtype=torch.int64))
    hook.close()
    texts = [text for record in said.records if "saved nothing" in (text := record.getMessage())]
    assert [text.partition(" matches")[0] for text in texts] == [
        "Collection default saved nothing: its include_regex relu_ouput",
        "Collection own saved nothing: its include_regex convolution",
    ]


def test_index_entries_hold_the_checksum_of_the_payload(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"])
    hook.register_module(training.model)
    hook.save_tensor("large", torch.arange(50_000))
    training.step()
    index = run.index(0)
    data = (run.path / index["meta"]["event_file_name"]).read_bytes()
    assert len(index["tensor_payload"]) == 3
    for entry in index["tensor_payload"]:
        payload, _ = read_record(data, entry["start_idx"])
        assert entry["crc32c"] == crc32c(payload)


def test_the_shape_of_an_empty_tensor_is_saved(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(reduction_config=smd.ReductionConfig(save_shape=True))
    hook.register_module(training.model)
    hook.save_tensor("empty", np.zeros((0, 3)))
    hook.save_tensor("empty_too", torch.zeros(0))
    training.step()
    hook.close()
    shapes = {entry["tensorname"]: entry["shape"] for entry in run.index(0)["shape_payload"]}
    assert shapes == {"empty": [0, 3], "empty_too": [0]}
    tensor = create_trial(run.path).tensor("empty")
    assert tensor.shape(0) == (0, 3)
    with pytest.raises(TensorUnavailableForStep):
        tensor.value(0)
