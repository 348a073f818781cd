"""Tests of verdicts of rules that had too little to judge, or nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys
from tests.integration.smdebug.rules.rule_container import read_warnings
from tests.unit.smdebug.runs import RunMaker


def write_losses_by_mode(run: RunMaker, train_interval: int = 5, eval_interval: int = 1) -> None:
    """Five epochs of ten training steps, of which every fifth is saved, and one validation step."""
    config = SaveConfig(
        {
            ModeKeys.TRAIN: SaveConfigMode(train_interval),
            ModeKeys.EVAL: SaveConfigMode(eval_interval),
            ModeKeys.PREDICT: SaveConfigMode(500),
            ModeKeys.GLOBAL: SaveConfigMode(500),
        }
    )
    manager = CollectionManager()
    manager.add(Collection("losses", include_regex="loss", save_config=config))
    manager.export(run.out_dir, "worker_0_collections.json")
    for epoch in range(5):
        for step in (10 * epoch, 10 * epoch + 5):
            run.write_step(step + epoch, {"loss": 9 - step / 10}, ModeKeys.TRAIN, step)
        run.write_step(11 * epoch + 10, {"loss": 9.0 - epoch}, ModeKeys.EVAL, epoch)
    run.end()


@pytest.mark.parametrize(
    ("train_interval", "eval_interval", "said"),
    [
        (5, 1, "; collection losses is saved every 5 TRAIN steps and every EVAL step."),
        (5, 5, "; collection losses is saved every 5 steps."),
        (1, 1, "."),
    ],
)
def test_the_interval_is_said_by_mode(
    evaluate: Any, run: RunMaker, train_interval: int, eval_interval: int, said: str
) -> None:
    write_losses_by_mode(run, train_interval, eval_interval)
    details = evaluate("LossNotDecreasing", mode="EVAL", num_steps="1").details
    judged = " It judged: values in 0 of 10 saved steps of TRAIN and 5 of 5 saved steps of EVAL"
    assert details.endswith(f"{judged}{said}")


@pytest.mark.parametrize(
    ("parameters", "steps", "num_steps", "advice"),
    [
        ({}, "EVAL steps", 10, "4 apart. Set mode to TRAIN, lower num_steps to 4 or less, or train for longer."),
        ({}, "EVAL steps", 40, "4 apart. Set mode to TRAIN, lower num_steps to 4 or less, or train for longer."),
        ({}, "EVAL steps", 46, "4 apart. Lower num_steps to 4 or less, or train for longer."),
        ({"mode": "EVAL"}, "EVAL steps", 40, "4 apart. Lower num_steps to 4 or less, or train for longer."),
        ({"mode": "TRAIN"}, "TRAIN steps", 46, "45 apart. Lower num_steps to 45 or less, or train for longer."),
        ({"mode": "GLOBAL"}, "steps", 55, "54 apart. Lower num_steps to 54 or less, or train for longer."),
    ],
)
def test_losses_whose_steps_are_too_near_were_not_judged(
    evaluate: Any,
    run: RunMaker,
    reported: Path,
    parameters: dict[str, str],
    steps: str,
    num_steps: int,
    advice: str,
) -> None:
    write_losses_by_mode(run)
    verdict = evaluate("LossNotDecreasing", num_steps=str(num_steps), **parameters)
    said = (
        "Rule LossNotDecreasing judged nothing. It could not fire in 15 steps, the last of them 54: no comparison was "
        f"made. The {steps} of a loss have to be num_steps ({num_steps}) apart to be compared, and are at most {advice}"
    )
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.startswith(said)
    assert read_warnings(reported) == [("RuleHadLittleToJudge", verdict.details)]


@pytest.mark.parametrize("parameters", [{"num_steps": "40", "mode": "TRAIN"}, {"num_steps": "4"}])
def test_losses_that_were_compared_once_were_judged(
    evaluate: Any, run: RunMaker, reported: Path, parameters: dict[str, str]
) -> None:
    write_losses_by_mode(run)
    details = evaluate("LossNotDecreasing", **parameters).details
    assert details.startswith("Rule LossNotDecreasing found no issue in 15 steps, the last of them 54. It judged: ")
    assert read_warnings(reported) == []


def test_losses_that_were_compared_only_before_those_of_their_mode(evaluate: Any, run: RunMaker) -> None:
    run.write_steps("loss", {step: 30.0 - step for step in range(20)}, ModeKeys.TRAIN)
    run.write_step(20, {"loss": 9.0}, ModeKeys.EVAL, 0)
    run.end()
    details = evaluate("LossNotDecreasing").details
    assert details.startswith("Rule LossNotDecreasing found no issue in 21 steps, the last of them 20.")
    assert " Only early steps were compared. The EVAL steps of a loss have to be num_steps (10) apart " in details
    assert details.endswith(" and are fewer than two. Set mode to TRAIN, or train for longer.")


@pytest.mark.parametrize(
    ("rule", "parameters", "said"),
    [
        (
            "UnchangedTensor",
            {"collection_names": "losses", "num_steps": "5"},
            "saved at num_steps (5) steps of one mode.",
        ),
        ("WeightUpdateRatio", {"num_steps": "9"}, "two training steps that are at most num_steps (9) apart."),
        ("Overtraining", {"patience_train": "4"}, "the train loss was saved at 4 steps (patience_train 4)."),
        ("PoorWeightInitialization", {"patience": "4"}, "it found losses alone, at 4 training steps, and needs more"),
        ("ClassImbalance", {"samples": "9"}, "it has to see 9 labels of a mode (samples), and saw 8."),
        ("CheckInputImages", {"regex": "image", "threshold_samples": "9"}, "has to see 9 images of a mode (threshold_"),
    ],
)
def test_a_rule_that_could_not_fire_judged_nothing(
    evaluate: Any, run: RunMaker, reported: Path, rule: str, parameters: dict[str, str], said: str
) -> None:
    run.write_collections({"losses": {"loss"}, "weights": {"fc.weight"}})
    for step in range(0, 40, 10):
        labels, image = np.arange(2), np.zeros((2, 3, 4, 4))
        weight = np.full(3, 1.0 + step)
        run.write_step(step, {"loss": 9.0 - step / 10, "fc.weight": weight, "labels": labels, "image": image})
    run.end()
    verdict = evaluate(rule, **parameters)
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.startswith(
        f"Rule {rule} judged nothing. It could not fire in 4 steps, the last of them 30: "
    )
    assert said in verdict.details
    assert read_warnings(reported) == [("RuleHadLittleToJudge", verdict.details)]
    # With one step less it could have fired.
    (name, value), *_ = reversed(parameters.items())
    less = {**parameters, name: str(int(value) + (1 if rule == "WeightUpdateRatio" else -1))}
    assert evaluate(rule, **less).details.startswith(f"Rule {rule} found no issue in 4 steps, the last of them 30.")


@pytest.mark.parametrize(("patience", "is_judged"), [("2", True), ("3", False)])
def test_validation_losses_fewer_than_the_patience_were_not_judged(
    evaluate: Any, run: RunMaker, reported: Path, patience: str, is_judged: bool
) -> None:
    run.write_step(0, {"loss": 1.0}, ModeKeys.TRAIN, 0)
    for number in range(2):
        run.write_step(1 + number, {"loss": 1.0}, ModeKeys.EVAL, number)
    run.end()
    details = evaluate("Overfit", patience=patience).details
    shortage = (
        "judged nothing. It could not fire in 3 steps, the last of them 2: the ratio has to be too high at patience"
    )
    assert (shortage in details) != is_judged
    assert len(read_warnings(reported)) == (not is_judged)


def test_ratios_that_are_all_nan_were_not_judged(evaluate: Any, run: RunMaker, reported: Path) -> None:
    run.write_collections({"weights": {"fc.weight"}})
    for step in range(3):
        run.write_step(step, {"fc.weight": np.full(3, 1.0 if step == 0 else np.nan)})
    run.end()
    details = evaluate("WeightUpdateRatio").details
    assert details.startswith(
        "Rule WeightUpdateRatio judged nothing. It could not fire in 3 steps, the last of them 2: all that it measured "
        "is NaN. The rule ExplodingTensor names the tensor that first had NaN or infinity."
    )
    assert read_warnings(reported) == [("RuleHadLittleToJudge", details)]


def test_an_empty_tensor_is_nothing_to_measure(evaluate: Any, run: RunMaker, reported: Path) -> None:
    run.write_steps("empty", {step: np.zeros((0, 3)) for step in range(3)})
    run.end()
    details = evaluate("AllZero", tensor_regex="empty").details
    assert details == (
        "Rule AllZero judged nothing. It could not fire in 3 steps, the last of them 2: none of what it found could be "
        "measured."
    )
    assert read_warnings(reported) == [("RuleHadLittleToJudge", details)]
