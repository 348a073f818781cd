import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules.builtin.loss_not_decreasing import LossNotDecreasing, compute_fall_percent, describe_problem
from smdebug.rules.builtin.overtraining import Overtraining
from smdebug.trials import create_trial
from tests.unit.smdebug.rules.builtin.judging import find_firing, write_run
from tests.unit.smdebug.runs import RunMaker

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL


@pytest.mark.parametrize(
    ("before", "now", "percent"),
    [(2, 1, 50), (1, 2, -100), (-1, -2, 100), (0, 0, 0), (0, 1, -math.inf), (0, -1, math.inf), (1, 1, 0)],
)
def test_fall(before: float, now: float, percent: float) -> None:
    assert compute_fall_percent(before, now) == percent


@pytest.mark.parametrize(
    ("before", "now", "problem"),
    [
        (0.0, math.nan, "no decrease"),
        (1.0, 0.998, None),
        (1.0, 0.9995, "fell by 0.05 %; it has to fall by at least 0.1 % (diff_percent)"),
        (1.0, 1.0, "it did not change"),
        (1.0, 1.03, None),
        (1.0, 1.049, None),
        (1.0, 1.06, "rose by 6 %, more than the 5 % of increase_threshold_percent"),
        (1.0, math.nan, "no decrease"),
    ],
)
def test_problem(before: float, now: float, problem: str | None) -> None:
    found = describe_problem(before, now, 0.1, 5)
    assert (found is None) == (problem is None)
    assert problem is None or problem in str(found)


def judge(folder: Path, losses: list[tuple[ModeKeys, int, Any]], **parameters: str) -> list[int]:
    """Global steps at which the rule fires; losses are (mode, mode step, value), one a global step."""
    run = RunMaker(folder)
    for step, (mode, mode_step, value) in enumerate(losses):
        run.write_step(mode_step if mode is GLOBAL else step, {"loss": value}, mode, mode_step)
    run.end()
    trial = create_trial(str(folder))
    rule = LossNotDecreasing(trial, **parameters)
    return [step for step in trial.steps() if rule.invoke_at_step(step)]


def test_documented_schedule(tmp_path: Path) -> None:
    """A loss saved every three steps is compared ten or more steps back, and next ten or more steps later."""
    losses = [(GLOBAL, step, 1.0) for step in range(0, 60, 3)]
    assert judge(tmp_path, losses) == [12, 24, 36, 48]


def test_falling_loss_is_fine(tmp_path: Path) -> None:
    assert judge(tmp_path, [(GLOBAL, step, 0.9**step) for step in range(40)]) == []


def test_plateau_after_a_fall(tmp_path: Path) -> None:
    losses = [(GLOBAL, step, max(10.0 - step, 4.0)) for step in range(40)]
    assert judge(tmp_path, losses, num_steps="5") == [15, 20, 25, 30, 35]


def test_threshold_can_be_the_only_condition(tmp_path: Path) -> None:
    losses = [(GLOBAL, step, 1.0 + 0.01 * step) for step in range(12)]
    assert judge(tmp_path / "a", losses, num_steps="3", diff_percent="-100", increase_threshold_percent="3.5") == []
    assert judge(tmp_path / "b", losses, num_steps="4", diff_percent="-100", increase_threshold_percent="3.5") == [4, 8]


ALTERNATING = [
    (mode, number, value) for number in range(8) for mode, value in ((TRAIN, 1.0), (EVAL, 1.0 / (number + 1)))
]


def test_eval_comes_before_train(tmp_path: Path) -> None:
    """TRAIN stands still and EVAL falls: judged by EVAL once there is some."""
    assert judge(tmp_path, ALTERNATING, num_steps="2") == []


def test_mode_that_is_asked_for(tmp_path: Path) -> None:
    assert judge(tmp_path, ALTERNATING, num_steps="2", mode="train") == [4, 8, 12]


def test_train_before_global(tmp_path: Path) -> None:
    losses = [(TRAIN, step, 1.0) for step in range(6)]
    assert judge(tmp_path, losses, num_steps="5") == [5]


def test_mean_of_elements_and_workers(tmp_path: Path) -> None:
    run = RunMaker(tmp_path, workers=2)
    for step, (first, second) in enumerate([(1.0, 3.0), (3.0, 1.0)]):
        run.write_step(step, {"softmaxloss0_output_0": np.array([first, first])})
        run.write_step(step, {"softmaxloss0_output_0": np.array(second)}, worker="worker_1")
    run.end()
    rule = LossNotDecreasing(create_trial(str(tmp_path)), num_steps=1)
    assert rule.invoke_at_step(1)
    assert rule.finding is not None
    assert rule.finding.value == 0
    assert "2 after 2 at GLOBAL step 0" in str(rule.finding)


def test_other_tensors(tmp_path: Path) -> None:
    run = RunMaker(tmp_path)
    for step in range(3):
        run.write_step(step, {"loss": 1.0 / (step + 1), "metric": 1.0})
    run.end()
    trial = create_trial(str(tmp_path))
    rule = LossNotDecreasing(trial, tensor_regex="^metric$", use_losses_collection="False", num_steps="2")
    assert rule.invoke_at_step(2)
    assert not LossNotDecreasing(trial, num_steps="2").invoke_at_step(2)
    with pytest.raises(SMDebugValueError, match="collection_names or tensor_regex"):
        LossNotDecreasing(trial, use_losses_collection="False")


@pytest.mark.parametrize(
    "metric", ["auc", "aucpr", "ndcg", "ndcg@5", "ndcg@5-", "map@3", "pre", "rmse", "mape", "auction"]
)
def test_a_metric_that_should_rise_is_not_a_loss(tmp_path: Path, metric: str) -> None:
    """XGBoost's hook puts most of these into the collection losses, as smdebug's does."""
    name = f"my-validation-{metric}"
    trial = write_run(tmp_path, [{name: 0.1 * step} for step in range(1, 13)], collections={"losses": {name}})
    is_loss = metric in ("rmse", "mape", "auction")
    for rule in (LossNotDecreasing, Overtraining):
        assert bool(find_firing(rule(trial))) is is_loss
    assert find_firing(LossNotDecreasing(trial, tensor_regex=metric)) == [10]


@pytest.mark.parametrize(("percent", "fires"), [("5", []), ("2", [2, 4])])
def test_a_loss_may_rise_up_to_its_percentage(tmp_path: Path, percent: str, fires: list[int]) -> None:
    trial = write_run(tmp_path, [{"loss": 1.02**step} for step in range(6)])
    rule = LossNotDecreasing(trial, num_steps="2", increase_threshold_percent=percent)
    assert find_firing(rule) == fires
    (rises,) = rule.watched_quantities.values()
    assert rises.fires == "above"
    assert rises.threshold == float(percent)
    assert rises.values[0] == pytest.approx(4.04)
    assert [rises.fires_at(step) for step in (2, 4)] == [bool(fires)] * 2


# What stands beside the losses of a network, rising in its mean: arrays, and what has a single element by chance.
BESIDE_A_LOSS = {
    "Net_fc.weight": np.ones((4, 3)),
    "Net_fc.bias": np.ones(1),
    "gradient/Net_fc.bias": np.ones(1),
    "Net_output_0": np.ones((8, 1)),
}
COLLECTIONS = {
    "losses": {"loss"},
    "weights": {"Net_fc.weight"},
    "biases": {"Net_fc.bias"},
    "gradients": {"gradient/Net_fc.bias"},
}


def test_weights_are_not_losses(tmp_path: Path) -> None:
    """AWS's own example of the parameters chooses every tensor, of which only single numbers count."""
    steps = [
        {"loss": 0.9**step}
        | {name: value * 2**step if value.dtype.kind == "f" else value for name, value in BESIDE_A_LOSS.items()}
        for step in range(4)
    ]
    trial = write_run(tmp_path, steps, collections=COLLECTIONS)
    rule = LossNotDecreasing(trial, tensor_regex=".*", num_steps="1")
    assert find_firing(rule) == []
    assert rule.inspected == 4
    # A collection that is asked for by its name is looked at.
    assert find_firing(LossNotDecreasing(trial, collection_names="biases", num_steps="1"))[0] == 1
    only_arrays = LossNotDecreasing(trial, tensor_regex="weight", use_losses_collection="False")
    assert find_firing(only_arrays) == []
    assert only_arrays.inspected == 0


def test_a_loss_saved_as_its_mean(tmp_path: Path) -> None:
    trial = write_run(tmp_path, [{"smdebug/reductions/mean/loss": 1.0}] * 2, collections={"losses": {"loss"}})
    assert find_firing(LossNotDecreasing(trial, num_steps="1")) == [1]
