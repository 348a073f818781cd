"""Tests of UnchangedTensor, WeightUpdateRatio and SimilarAcrossRuns.

They compare a tensor with another of the same name.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.similar_across_runs import SimilarAcrossRuns
from smdebug.rules.builtin.unchanged_tensor import UnchangedTensor, is_unchanged
from smdebug.rules.builtin.weight_update_ratio import WeightUpdateRatio, compute_update_ratio, measure_update
from tests.unit.smdebug.rules.builtin.judging import EVAL, TRAIN, find_firing, get_finding, write_run

WEIGHTS = ["Net_fc.weight", "dense0_weight", "d1/weights/d1/kernel:0", "weights/d1/kernel:0"]


@pytest.mark.parametrize("seed", range(20))
def test_unchanged_agrees_with_allclose(seed: int) -> None:
    random = np.random.default_rng(seed)
    before = random.standard_normal(5).astype(np.float32)
    now = (before * (1 + random.choice([0, 0.9e-5, 1.1e-5, 1e-3]))).astype(np.float32)
    for rtol, atol in ((1e-5, 1e-8), (0.0, 0.0), (1e-3, 0.0)):
        assert is_unchanged(now, before, rtol=rtol, atol=atol) == np.allclose(now, before, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", [*WEIGHTS, "train-rmse"])
def test_unchanged_in_the_last_steps(tmp_path: Path, name: str) -> None:
    values = [1.0, 1.0, 1.1, 1.1, 1.1, 1.1, 1.2]
    steps = [{name: np.full(4, value)} for value in values]
    rule = UnchangedTensor(write_run(tmp_path, steps), tensor_regex=".")
    assert find_firing(rule) == [4, 5]
    assert get_finding(rule).tensor == name
    assert find_firing(UnchangedTensor(rule.base_trial, tensor_regex=".", num_steps="4")) == [5]
    assert find_firing(UnchangedTensor(rule.base_trial, tensor_regex=".", rtol="0.2")) == [2, 3, 4, 5, 6]


def test_unchanged_counts_steps_of_one_mode(tmp_path: Path) -> None:
    modes = [TRAIN, EVAL] * 4
    trial = write_run(tmp_path, [{"w": 1.0 if mode is EVAL else float(at)} for at, mode in enumerate(modes)], modes)
    assert find_firing(UnchangedTensor(trial, tensor_regex="w")) == [5, 7]


def test_unchanged_nan(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"w": np.array([np.nan, 1.0])}] * 3)
    assert find_firing(UnchangedTensor(trial, tensor_regex="w")) == []
    assert find_firing(UnchangedTensor(trial, tensor_regex="w", equal_nan="True")) == [2]


def test_unchanged_reductions(tmp_path: Path) -> None:
    changing = write_run(tmp_path / "a", [{"smdebug/reductions/l2/w": float(step)} for step in range(4)])
    assert find_firing(UnchangedTensor(changing, tensor_regex="w")) == []
    equal = write_run(tmp_path / "b", [{"smdebug/reductions/l2/w": 1.0}] * 3)
    with pytest.raises(TensorUnavailableForStep, match="equal or missing"):
        UnchangedTensor(equal, tensor_regex="w").invoke_at_step(2)


def test_ratio_agrees_with_numpy() -> None:
    random = np.random.default_rng(9)
    before, now = random.standard_normal((2, 30, 20)).astype(np.float32)
    expected = np.mean(np.abs(now.astype(float) - before)) / (np.mean(np.abs(before.astype(float))) + 1e-9)
    assert compute_update_ratio(*measure_update(now, before), 1e-9) == pytest.approx(expected, rel=1e-5)
    assert compute_update_ratio(*measure_update(np.ones(2), np.zeros(2)), 0) == np.inf
    assert compute_update_ratio(*measure_update(np.zeros(2), np.zeros(2)), 0) == 0


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (np.array([200], np.uint8), np.array([100], np.uint8), 0.5),
        (np.array([True, True]), np.array([True, False]), 0.5),
        (np.array([60000], np.float16), np.array([-60000], np.float16), 2),
        (np.full(4, 2e38, np.float32), np.full(4, 1e38, np.float32), 0.5),
    ],
)
def test_update_ratio_of_small_types(before: Any, now: Any, expected: float) -> None:
    assert compute_update_ratio(*measure_update(now, before), 0) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(("factor", "fires"), [(1.5, []), (10.9, []), (11.1, [1]), (1 + 2e-8, []), (1 + 0.5e-8, [1])])
def test_update_ratio(tmp_path: Path, name: str, factor: float, fires: list[int]) -> None:
    rule = WeightUpdateRatio(write_run(tmp_path, [{name: np.full(6, value)} for value in (1.0, factor)]))
    assert find_firing(rule) == fires
    if fires:
        assert ("above large_threshold 10" if factor > 2 else "below small_threshold 1e-08") in get_finding(rule).text


def test_update_ratio_over_more_steps(tmp_path: Path) -> None:
    weights = [{"fc.weight": np.array([float(value)])} for value in (1, 2, 4, 8)]
    trial = write_run(tmp_path, weights)
    rule = WeightUpdateRatio(trial, num_steps="2", large_threshold="2.9")
    assert find_firing(rule) == [2, 3]
    assert get_finding(rule).value == pytest.approx(3.0)
    assert find_firing(WeightUpdateRatio(trial, large_threshold="1.1")) == []


def test_update_ratio_passes_validation_over(tmp_path: Path) -> None:
    values = [1.0, 1.0, 1.0, 2.0]
    trial = write_run(tmp_path, [{"fc.weight": value} for value in values], [TRAIN, EVAL, EVAL, TRAIN])
    assert find_firing(WeightUpdateRatio(trial)) == []


def test_update_ratio_needs_values(tmp_path: Path) -> None:
    with pytest.raises(TensorUnavailableForStep, match="value was not saved"):
        WeightUpdateRatio(write_run(tmp_path, [{"smdebug/reductions/l2/fc.weight": 1.0}])).invoke_at_step(0)


def make_pair(tmp_path: Path, base: list[Any], other: list[Any], **parameters: str) -> SimilarAcrossRuns:
    trials = [write_run(tmp_path / name, steps) for name, steps in (("base", base), ("other", other))]
    return SimilarAcrossRuns(trials[0], [trials[1]], **parameters)


@pytest.mark.parametrize("name", [*WEIGHTS, "train-rmse"])
def test_similar(tmp_path: Path, name: str) -> None:
    values = np.arange(6.0)
    almost = np.nextafter(values, np.inf)
    rule = make_pair(tmp_path, [{name: values}] * 3, [{name: almost}, {name: values}])
    assert find_firing(rule) == [1]
    assert get_finding(rule).tensor == name
    assert "step 1 of other" in str(get_finding(rule))


def test_similar_by_choice_and_shape(tmp_path: Path) -> None:
    base = [{"fc.weight": np.ones(4), "loss": 1.0}]
    assert find_firing(make_pair(tmp_path / "a", base, [{"fc.weight": np.ones((2, 2)), "loss": 2.0}])) == []
    assert find_firing(make_pair(tmp_path / "b", base, base, collection_names="losses")) == [0]
    assert find_firing(make_pair(tmp_path / "c", base, base, tensor_regex="nothing")) == []


def test_similar_step_of_the_same_mode(tmp_path: Path) -> None:
    base = write_run(tmp_path / "a", [{"x": 1.0}, {"x": 5.0}], [EVAL, TRAIN])
    other = write_run(tmp_path / "b", [{"x": 5.0}, {"x": 2.0}], [TRAIN, EVAL])
    assert find_firing(SimilarAcrossRuns(base, other)) == [1]


@pytest.mark.parametrize(("value", "fires"), [(1.0, [0]), (2.0, [])])
def test_similar_reductions(tmp_path: Path, value: float, fires: list[int]) -> None:
    base = [{"smdebug/reductions/l2/w": 1.0, "smdebug/reductions/max/w": 3.0}]
    assert find_firing(make_pair(tmp_path, base, [{"smdebug/reductions/l2/w": value}])) == fires


def test_other_trials_are_required(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="other_trials is required"):
        SimilarAcrossRuns(write_run(tmp_path, [{}]))


def test_num_steps_must_compare_something(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="num_steps is '1', expected a whole number of at least 2"):
        UnchangedTensor(write_run(tmp_path, [{}]), tensor_regex="w", num_steps="1")
