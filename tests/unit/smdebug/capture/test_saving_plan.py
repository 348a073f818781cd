"""Tests of saving plans: what is saved of a tensor at a step, and when."""

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.capture.part_capture import PartCapture
from smdebug.capture.saving_plan import SavingPlan, StepPlan
from smdebug.config.collection import Collection
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys


def build(name: str, regex: str | None = None, interval: int = 2, **reduction: Any) -> Collection:
    config = ReductionConfig(**reduction) if reduction else ReductionConfig(save_raw_tensor=True)
    return Collection(name, regex, None, config, SaveConfig(save_interval=interval))


def find_due(plan: SavingPlan, mode: ModeKeys, step: int) -> list[str]:
    found = plan.get_step_plan(mode, step)
    return [] if found is None else [collection.name for collection in found.due]


def test_only_included_collections_are_saved_and_all_means_every_one() -> None:
    collections = [build("a"), build("b")]
    assert [each.name for each in SavingPlan(collections, ["b", "none"]).saved] == ["b"]
    assert [each.name for each in SavingPlan(collections, ["all"]).saved] == ["a", "b"]
    assert SavingPlan(collections, []).get_step_plan(ModeKeys.TRAIN, 0) is None


def test_a_collection_is_due_as_its_own_configuration_says() -> None:
    plan = SavingPlan([build("a", interval=2), build("b", interval=3), build("c", interval=2)], ["all"])
    due = [find_due(plan, ModeKeys.TRAIN, step) for step in range(5)]
    assert due == [["a", "c", "b"], [], ["a", "c"], ["b"], ["a", "c"]]


def test_steps_with_the_same_collections_share_a_plan() -> None:
    plan = SavingPlan([build("a", interval=2), build("b", interval=3)], ["all"])
    assert plan.get_step_plan(ModeKeys.TRAIN, 2) is plan.get_step_plan(ModeKeys.EVAL, 4)
    assert plan.get_step_plan(ModeKeys.TRAIN, 2) is not plan.get_step_plan(ModeKeys.TRAIN, 3)


@pytest.mark.parametrize("name", ["gradients", "optimizer_variables"])
def test_what_exists_in_training_only_is_not_due_in_other_modes(name: str) -> None:
    plan = SavingPlan([build(name), build("weights")], ["all"])
    due = {mode.name: find_due(plan, mode, 0) for mode in ModeKeys}
    both = [name, "weights"]
    assert due == {"TRAIN": both, "GLOBAL": both, "EVAL": ["weights"], "PREDICT": ["weights"]}


@given(
    intervals=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    ends=st.lists(st.integers(0, 30) | st.none(), min_size=3, max_size=3),
    step=st.integers(0, 40),
)
def test_idle_steps_are_counted_to_the_first_that_is_due(
    intervals: list[int], ends: list[int | None], step: int
) -> None:
    collections = [
        Collection(str(number), None, None, None, SaveConfigMode(interval, None, end))
        for number, (interval, end) in enumerate(zip(intervals, ends, strict=False))
    ]
    plan = SavingPlan(collections, ["all"])
    due = next((later for later in range(step, 100) if plan.get_step_plan(ModeKeys.TRAIN, later)), sys.maxsize)
    assert plan.count_idle_steps(ModeKeys.TRAIN, step) == due - step


def test_a_tensor_becomes_part_of_each_saved_collection_that_it_matches() -> None:
    due, other, neither = build("due", "relu"), build("other", "relu_1"), build("neither", "tanh")
    plan = StepPlan([due], [due, other, neither])
    for _ in range(2):
        selection = plan.select("relu_1")
        assert selection is not None
        assert selection.collections == (due,)
    assert plan.select("tanh_1") is None
    assert [each.tensor_names for each in (due, other, neither)] == [{"relu_1"}, {"relu_1"}, set()]


def test_one_collection_takes_a_tensor_that_it_does_not_match() -> None:
    due, other = build("due", "relu"), build("other", "any")
    plan = StepPlan([due], [due, other])
    for _ in range(2):
        selection = plan.select_for("mine", "due")
        assert selection is not None
        assert selection.collections == (due,)
        assert plan.select_for("mine", "other") is None
    assert (due.tensor_names, other.tensor_names) == ({"mine"}, set())
    assert plan.has_collection("due")
    assert not plan.has_collection("other")


def test_what_several_collections_want_of_a_tensor_is_saved_once() -> None:
    first = build("first", reductions=["min", "max"], save_shape=True)
    second = build("second", reductions=["max"], abs_norms=["l1"])
    selection = StepPlan.combine([first, second])
    assert selection is not None
    assert (selection.raw, selection.shape) == (False, True)
    assert selection.operations == (("min", False), ("max", False), ("l1", True))
    assert StepPlan.combine([]) is None


@pytest.mark.parametrize(
    ("collection", "raw", "operations"),
    [
        (Collection("no config"), True, ()),
        (build("losses", reductions=["min"]), True, ()),
        (build("mine", reductions=["min"]), False, (("min", False),)),
        (build("mine", reductions=["min"], save_raw_tensor=True), True, (("min", False),)),
    ],
)
def test_scalars_and_what_has_no_reductions_are_saved_as_they_are(
    collection: Collection, raw: bool, operations: tuple[tuple[str, bool], ...]
) -> None:
    selection = StepPlan.combine([collection])
    assert selection is not None
    assert (selection.raw, selection.operations, selection.shape) == (raw, operations, False)
    # What another collection wants besides is added, in whichever order they come.
    other = build("other", reductions=["mean"])
    for pair in ((collection, other), (other, collection)):
        both = StepPlan.combine(pair)
        assert both is not None
        assert both.raw is raw
        assert set(both.operations) == {*operations, ("mean", False)}


@pytest.mark.parametrize(
    ("regex", "names", "wanted"),
    [
        ("^out_", (), True),
        ("out_11$", (), True),
        ("out_2[5-7]$", (), True),
        (r"out_\d\d$", (), True),
        ("out_1250$", (), True),
        ("in_", ("out_99",), True),
        ("in_12", (), False),
        ("out_x", (), False),
    ],
)
def test_numbered_tensors_may_be_wanted_by_regex_or_by_name(regex: str, names: tuple[str, ...], wanted: bool) -> None:
    collection = build("mine", regex)
    collection.add_tensor_name(names)
    plan = StepPlan([collection], [collection])
    assert [plan.wants_numbered("out_"), plan.wants_numbered("out_")] == [wanted, wanted]


def test_parts_of_a_plan_that_is_gone_are_forgotten() -> None:
    capture: PartCapture[str] = PartCapture(lambda _name, _value: None, lambda _lost, _error: None)
    capture.add("part", "fc")
    for _ in range(3):
        assert capture.find_wanted(StepPlan([], [])) == []
    assert len(capture._wanted) <= 1
