"""Tests of AllZero and TensorVariance: one tensor's statistic and a threshold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.builtin.all_zero import AllZero, compute_zero_percent
from smdebug.rules.builtin.tensor_variance import TensorVariance
from smdebug.rules.evaluator import evaluate
from smdebug.rules.measuring.moments import compute_variance
from tests.unit.smdebug.rules.builtin.judging import find_firing, get_finding, write_run

NAMES = ["fc.weight", "dense0_weight", "d1/weights/d1/kernel:0", "feature_importance/gain/f0"]


@pytest.mark.parametrize("name", NAMES)
def test_zeros(tmp_path: Path, name: str) -> None:
    steps = [{name: np.array([0.0] * 9 + [1e-30])}, {name: np.zeros(10)}]
    trial = write_run(tmp_path, steps)
    rule = AllZero(trial, tensor_regex=".")
    assert find_firing(rule) == [1]
    assert (get_finding(rule).tensor, get_finding(rule).value, get_finding(rule).threshold) == (name, 100.0, 100.0)
    assert find_firing(AllZero(trial, tensor_regex=".", threshold="90")) == [0, 1]
    assert find_firing(AllZero(trial, tensor_regex=".", threshold="90.1")) == [1]


def test_zeros_agree_with_counting() -> None:
    values = np.random.default_rng(0).integers(0, 3, (7, 11))
    zeros = sum(v == 0 for v in values.flat)
    assert compute_zero_percent(zeros, values.size) == pytest.approx(100 * zeros / values.size)


def test_an_empty_tensor_is_not_zero(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"t": np.zeros(0)}])
    assert find_firing(AllZero(trial, tensor_regex="t", threshold="0")) == []


@pytest.mark.parametrize(
    ("reduction", "value", "threshold", "fires"),
    [
        ("abs_max", 0.0, "100", True),
        ("l2", 0.0, "100", True),
        ("abs_mean", 0.1, "100", False),
        ("abs_mean", 0.1, "50", None),
        ("mean", 0.0, "100", None),
    ],
)
def test_zeros_of_reductions(tmp_path: Path, reduction: str, value: float, threshold: str, fires: bool | None) -> None:
    trial = write_run(tmp_path, [{f"smdebug/reductions/{reduction}/w": value}])
    rule = AllZero(trial, tensor_regex="w", threshold=threshold)
    if fires is None:
        with pytest.raises(TensorUnavailableForStep, match="reduction that shows"):
            rule.invoke_at_step(0)
    else:
        assert rule.invoke_at_step(0) is fires


def test_a_choice_is_required(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"w": 0.0}])
    with pytest.raises(SMDebugValueError, match="Rule AllZero: collection_names or tensor_regex is required"):
        AllZero(trial)
    with pytest.raises(SMDebugValueError, match="collection_names or tensor_regex is required"):
        TensorVariance(trial, max_threshold="1")
    with pytest.raises(SMDebugValueError, match="threshold is 'many', expected a number from 0 to 100"):
        AllZero(trial, tensor_regex="w", threshold="many")


def test_variance_without_thresholds_finds_nothing_and_says_so(tmp_path: Path) -> None:
    """Both thresholds are optional, as AWS documents them."""
    trial = write_run(tmp_path, [{"w": np.array([0.0, value])} for value in (2.0, 1e30, np.inf)])
    rule = TensorVariance(trial, tensor_regex="w", max_threshold="None")
    verdict = evaluate(rule)
    assert verdict.status == "NoIssuesFound"
    assert verdict.details == (
        "Rule TensorVariance judged nothing. It could not fire in 3 steps, the last of them 2: neither max_threshold "
        "nor min_threshold is given. Give one of them."
    )
    (series,) = rule.watched_quantities.values()
    assert series.values[0] == 1
    assert "judged nothing" not in evaluate(TensorVariance(trial, tensor_regex="w", min_threshold="0")).details


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int64, np.complex64])
def test_variance_agrees_with_scipy(dtype: Any) -> None:
    values = (np.random.default_rng(2).standard_normal((20, 30)) * 4 + 100).astype(dtype)
    if dtype is np.complex64:
        assert compute_variance(values) == pytest.approx(np.var(values), rel=1e-4)
    else:
        assert compute_variance(values) == pytest.approx(stats.moment(values.ravel().astype(float), 2), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_variance(tmp_path: Path, name: str) -> None:
    spread = np.array([-1.0, 1.0] * 8)
    trial = write_run(tmp_path, [{name: spread * np.sqrt(factor)} for factor in (0.99, 1.01, 4.0)])
    above = TensorVariance(trial, tensor_regex=".", max_threshold="1")
    assert find_firing(above) == [1, 2]
    assert get_finding(above).value == pytest.approx(4.0)
    assert find_firing(TensorVariance(trial, tensor_regex=".", min_threshold="1")) == [0]
    assert find_firing(TensorVariance(trial, tensor_regex=".", min_threshold="0.5", max_threshold="5")) == []


@pytest.mark.parametrize(("reduction", "value"), [("variance", 4.0), ("std", 2.0)])
def test_variance_of_reductions(tmp_path: Path, reduction: str, value: float) -> None:
    trial = write_run(tmp_path, [{f"smdebug/reductions/{reduction}/w": value}])
    assert find_firing(TensorVariance(trial, tensor_regex="w", max_threshold="3.9")) == [0]
    assert find_firing(TensorVariance(trial, tensor_regex="w", max_threshold="4")) == []


def test_nan_and_empty_are_not_out_of_bounds(tmp_path: Path) -> None:
    trial = write_run(
        tmp_path, [{"w": np.array([np.nan, 1.0])}, {"w": np.array([np.inf, -np.inf])}, {"w": np.zeros(0)}]
    )
    assert find_firing(TensorVariance(trial, tensor_regex="w", max_threshold="1", min_threshold="0.5")) == []


def test_unknown_variance(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"smdebug/reductions/mean/w": 1.0}])
    with pytest.raises(TensorUnavailableForStep, match="variance or std"):
        TensorVariance(trial, tensor_regex="w", max_threshold="1").invoke_at_step(0)
