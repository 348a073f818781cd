"""Tests of Overfit, Overtraining and PoorWeightInitialization."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin.overfit import Overfit, compute_overfit_ratio
from smdebug.rules.builtin.overtraining import Overtraining
from smdebug.rules.builtin.poor_weight_initialization import (
    PoorWeightInitialization,
    compute_spread,
    compute_variance_ratio,
)
from smdebug.rules.evaluator import evaluate
from smdebug.rules.measuring.losses import split_losses
from smdebug.trials import create_trial
from tests.unit.smdebug.rules.builtin.judging import EVAL, GLOBAL, PREDICT, TRAIN, find_firing, get_finding, write_run
from tests.unit.smdebug.runs import RunMaker

# How PyTorch, Keras and XGBoost save losses of training and of validation: (mode, names) of both.
PAIRS = {
    "pytorch": ((TRAIN, "CrossEntropyLoss_output_0"), (EVAL, "CrossEntropyLoss_output_0")),
    "mxnet": ((TRAIN, "softmaxcrossentropyloss0_output_0"), (EVAL, "softmaxcrossentropyloss0_output_0")),
    "keras": ((TRAIN, "loss"), (EVAL, "val_loss")),
}


@pytest.mark.parametrize(
    ("names", "mode", "expected"),
    [
        (["loss"], TRAIN, (["loss"], [])),
        (["loss"], EVAL, ([], ["loss"])),
        (["loss", "val_loss"], EVAL, (["loss"], ["val_loss"])),
        (["train-rmse", "validation-rmse"], GLOBAL, (["train-rmse"], ["validation-rmse"])),
        (["validation_0-logloss"], None, ([], ["validation_0-logloss"])),
        (["loss"], PREDICT, ([], [])),
    ],
)
def test_whose_loss_it_is(names: list[str], mode: Any, expected: Any) -> None:
    assert split_losses(names, mode) == expected


@pytest.mark.parametrize(("mode", "loss"), [(TRAIN, "loss"), (EVAL, "loss"), (GLOBAL, "train-rmse")])
def test_losses_of_one_phase_are_nothing_to_compare(tmp_path: Path, mode: Any, loss: str) -> None:
    verdict = evaluate(Overfit(write_run(tmp_path, [{loss: 1.0}] * 3, [mode] * 3)))
    assert verdict.status == "NoIssuesFound"
    assert "found none of what it looks at" in verdict.details


def test_ratio() -> None:
    assert compute_overfit_ratio([1.0, 3.0], [2.5, 1.9]) == pytest.approx((np.mean([2.5, 1.9]) - 2) / 2)
    assert compute_overfit_ratio([0.0], [1.0]) == np.inf
    assert np.isnan(compute_overfit_ratio([0.0], [np.nan]))


@pytest.mark.parametrize("framework", PAIRS)
@pytest.mark.parametrize(("validation", "fires"), [(1.09, []), (1.11, [2, 3])])
def test_overfit(tmp_path: Path, framework: str, validation: float, fires: list[int]) -> None:
    (train_mode, train_name), (eval_mode, eval_name) = PAIRS[framework]
    steps: list[dict[str, Any]] = [
        {train_name: 0.9},
        {train_name: 1.1},
        {eval_name: validation},
        {eval_name: validation},
    ]
    trial = write_run(tmp_path, steps, [train_mode, train_mode, eval_mode, eval_mode])
    rule = Overfit(trial)
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).value == pytest.approx((validation - 1) / 1)
        assert get_finding(rule).tensor == eval_name


def test_overfit_of_xgboost(tmp_path: Path) -> None:
    losses = [(1.0, 1.05), (0.8, 1.0), (0.6, 0.65), (0.4, 0.9), (0.2, 0.9)]
    trial = write_run(tmp_path, [{"train-logloss": train, "validation-logloss": valid} for train, valid in losses])
    expected = [at for at, (train, valid) in enumerate(losses) if (valid - train) / train > 0.1]
    assert find_firing(Overfit(trial)) == expected == [1, 3, 4]
    assert find_firing(Overfit(trial, patience="2")) == [4]
    assert find_firing(Overfit(trial, start_step="3")) == [3, 4]
    assert find_firing(Overfit(trial, tensor_regex="nothing")) == []


def test_means_are_those_of_a_phase(tmp_path: Path) -> None:
    """Training 3 and 1 make 2; the second training phase begins anew with 4."""
    modes = [TRAIN, TRAIN, EVAL, TRAIN, EVAL, EVAL]
    trial = write_run(tmp_path, [{"loss": loss} for loss in (3.0, 1.0, 2.1, 4.0, 4.5, 5.5)], modes)
    rule = Overfit(trial)
    assert find_firing(rule) == [4, 5]
    assert get_finding(rule).value == pytest.approx((5.0 - 4.0) / 4.0)


def test_arrays_are_not_losses(tmp_path: Path) -> None:
    """With every tensor chosen, weights must neither hide overfitting nor make it up."""
    weights = {"Net_fc.weight": np.full((4, 4), 9.0), "Net_fc.bias": np.full(1, 9.0)}
    collections = {"losses": {"Loss_output_0"}, "weights": {"Net_fc.weight"}, "biases": {"Net_fc.bias"}}
    losses = [1.0, 2.0, 1.0, 1.0]
    steps: list[dict[str, Any]] = [{"Loss_output_0": loss, **weights} for loss in losses]
    trial = write_run(tmp_path / "a", steps, [TRAIN, EVAL] * 2, collections)
    rule = Overfit(trial, tensor_regex=".*")
    assert find_firing(rule) == [1]
    assert get_finding(rule).value == 1
    assert "exceeds the mean training loss 1 by a ratio of 1, more than ratio_threshold 0.1" in get_finding(rule).text
    assert "in a row" not in get_finding(rule).text
    # Nothing of what is chosen is a loss: numbers are taken as they are asked for, arrays are not.
    steps = [{"Loss_output_0": 1.0, "score": score, **weights} for score in (1.0, 2.0)]
    trial = write_run(tmp_path / "b", steps, [TRAIN, EVAL], collections)
    assert find_firing(Overfit(trial, tensor_regex="score")) == [1]
    assert find_firing(Overfit(trial, tensor_regex="weight")) == []


def write_modes(folder: Path, steps: list[tuple[int, Any, float]]) -> Any:
    """A run of which only some steps were saved: (global step, mode, loss); TRAIN and EVAL come ten at a time."""
    run = RunMaker(folder)
    for step, mode, loss in steps:
        run.write_step(step, {"loss": loss}, mode, step // 20 * 10 + step % 10)
    run.end()
    return create_trial(str(folder))


def test_a_validation_is_compared_with_the_training_before_it(tmp_path: Path) -> None:
    """TRAIN was saved in the first and the third of three phases: the loss of the first is too old for the second."""
    steps = [(0, TRAIN, 1.0), (10, EVAL, 1.0), (15, EVAL, 1.0)]
    steps += [(30, EVAL, 3.0), (31, EVAL, 3.0)]
    steps += [(40, TRAIN, 0.5), (50, EVAL, 0.5), (55, EVAL, 0.9)]
    rule = Overfit(write_modes(tmp_path, steps))
    assert find_firing(rule) == [55]
    assert get_finding(rule).value == pytest.approx(0.4)
    assert rule.inspected == 4
    assert rule.remark().startswith("1 validation phase could not be judged")


def test_a_training_phase_ends_with_a_validation_that_was_not_saved(tmp_path: Path) -> None:
    rule = Overfit(write_modes(tmp_path, [(0, TRAIN, 9.0), (20, TRAIN, 1.0), (30, EVAL, 1.2)]))
    assert find_firing(rule) == [30]
    assert get_finding(rule).value == pytest.approx(0.2)


def test_verdict_says_that_nothing_was_comparable(tmp_path: Path) -> None:
    verdict = evaluate(Overfit(write_modes(tmp_path, [(10, EVAL, 1.0), (30, EVAL, 3.0), (31, EVAL, 3.0)])))
    assert verdict.status == "NoIssuesFound"
    assert "2 validation phases could not be judged, because no training loss was saved" in verdict.details


def wait_for_fire(losses: list[float], patience: int, delta: float) -> list[int]:
    """The documented rule, plainly."""
    fired, best, waited = [], np.inf, 0
    for step, loss in enumerate(losses):
        best, waited = (loss, 0) if loss < best - delta else (best, waited + 1)
        if waited >= patience:
            fired.append(step)
    return fired


@pytest.mark.parametrize(
    ("name", "mode", "patience"),
    [
        ("CrossEntropyLoss_output_0", TRAIN, 5),
        ("loss", TRAIN, 5),
        ("softmaxcrossentropyloss0_output_0", EVAL, 10),
        ("val_loss", EVAL, 10),
        ("train-rmse", GLOBAL, 5),
        ("validation-rmse", GLOBAL, 10),
    ],
)
def test_overtraining(tmp_path: Path, name: str, mode: Any, patience: int) -> None:
    losses = [1.0, 0.8, 0.6] + [0.6 - 0.00099 * step for step in range(1, 14)]
    trial = write_run(tmp_path, [{name: loss} for loss in losses], [mode] * len(losses))
    assert find_firing(Overtraining(trial)) == wait_for_fire(losses, patience, 0.01)
    assert find_firing(Overtraining(trial))[0] == 2 + patience
    assert find_firing(Overtraining(trial, delta="0")) == []


def test_overtraining_one_step_short(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"loss": loss} for loss in (1.0, 1.0, 1.0, 1.0, 1.0, 0.9)])
    rule = Overtraining(trial)
    assert find_firing(rule) == []
    assert find_firing(Overtraining(trial, patience_train="4")) == [4]


def test_nan_is_not_an_improvement(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"loss": 1.0}, *({"loss": np.nan} for _ in range(5))])
    assert find_firing(Overtraining(trial)) == [5]


@pytest.mark.parametrize("bad", [{"patience_train": "0"}, {"delta": "x"}, {"patience_validation": "1.5"}])
def test_wrong_parameters(tmp_path: Path, bad: dict[str, str]) -> None:
    ((name, value),) = bad.items()
    with pytest.raises(SMDebugValueError, match=f"{name} is '{value}', expected"):
        Overtraining(write_run(tmp_path, [{}]), **bad)


def scatter(variance: float) -> Any:
    return np.array([-1.0, 1.0] * 50) * np.sqrt(variance)


@pytest.mark.parametrize(
    "names",
    [
        ["dense0_relu_input_0", "dense1_relu_input_0"],
        ["relu0_input_0", "relu1_input_0"],
        ["features.relu1_input_0", "features.relu2_input_0"],
        ["re_lu/inputs", "re_lu_1/inputs"],
    ],
)
@pytest.mark.parametrize(("variance", "fires"), [(9.9, []), (10.1, [0])])
def test_variances(tmp_path: Path, names: list[str], variance: float, fires: list[int]) -> None:
    rule = PoorWeightInitialization(write_run(tmp_path, [{names[0]: scatter(1.0), names[1]: scatter(variance)}]))
    assert find_firing(rule) == fires
    if fires:
        assert get_finding(rule).tensor == names[1]
        assert get_finding(rule).value == pytest.approx(variance)


def test_variances_of_reductions_and_of_unnamed_modules(tmp_path: Path) -> None:
    saved = {"smdebug/reductions/variance/relu1_input_0": 1.0, "smdebug/reductions/std/relu2_input_0": 4.0}
    assert find_firing(PoorWeightInitialization(write_run(tmp_path / "a", [saved]))) == [0]
    pairs: dict[str, Any] = {}
    for module, variance in (("1", 1.0), ("3", 16.0)):
        pairs |= {f"{module}_input_0": scatter(variance), f"{module}_output_0": np.maximum(scatter(variance), 0)}
    assert find_firing(PoorWeightInitialization(write_run(tmp_path / "b", [pairs]))) == [0]
    assert find_firing(PoorWeightInitialization(write_run(tmp_path / "c", [pairs]), threshold="17")) == []
    assert compute_variance_ratio([0.0, 0.0]) == 1
    assert compute_variance_ratio([0.0, 2.0]) == np.inf


def test_variances_that_are_no_finite_numbers_are_not_judged(tmp_path: Path) -> None:
    inputs = {"relu0_input_0": scatter(1.0), "relu1_input_0": np.array([np.nan, 1.0]), "relu2_input_0": np.array([])}
    rule = PoorWeightInitialization(write_run(tmp_path, [inputs]))
    assert (find_firing(rule), rule.inspected) == ([], 1)


@pytest.mark.parametrize("name", ["gradient/Net_fc.weight", "gradient/dense0_weight", "gradients/d1/kernelGrad"])
@pytest.mark.parametrize(("factor", "fires"), [(1.01, []), (0.99, [0])])
def test_gradients(tmp_path: Path, name: str, factor: float, fires: list[int]) -> None:
    values = np.random.default_rng(4).standard_normal(500)
    # Sorted by hand: where the 5th and the 95th percentile of 500 numbers lie.
    ordered = np.sort(values)
    low, high = (np.interp(share * 499, range(500), ordered) for share in (0.05, 0.95))
    assert compute_spread(values) == pytest.approx(high - low)
    trial = write_run(tmp_path, [{name: values * factor * 0.001 / (high - low), "gradient/b.bias": np.array([1.0])}])
    assert find_firing(PoorWeightInitialization(trial)) == fires


@pytest.mark.parametrize(("losses", "fires"), [([1.0] * 6, [5]), ([1.0] * 5 + [0.9], [])])
def test_loss_that_does_not_fall(tmp_path: Path, losses: list[float], fires: list[int]) -> None:
    rule = PoorWeightInitialization(write_run(tmp_path, [{"CrossEntropyLoss_output_0": loss} for loss in losses]))
    assert find_firing(rule) == fires


def test_only_the_first_steps_of_training_count(tmp_path: Path) -> None:
    bad = {"relu0_input_0": scatter(1.0), "relu1_input_0": scatter(100.0)}
    good = {"relu0_input_0": scatter(1.0)}
    trial = write_run(tmp_path, [good, bad, good, bad], [TRAIN, EVAL, TRAIN, TRAIN])
    assert find_firing(PoorWeightInitialization(trial)) == [3]
    assert find_firing(PoorWeightInitialization(trial, steps="2")) == []
