"""Verdicts of the 21 rules on a run, beside independently computed formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.evaluator import evaluate
from smdebug.rules.measuring.classes import count_pairs, pair_classes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smdebug.rules.built_in_rule import BuiltInRule
    from smdebug.rules.rule import Finding
    from smdebug.trials import Trial

# What has to be given: these rules look at nothing by themselves, or wait for half an hour.
REQUIRED: dict[str, dict[str, str]] = {
    "AllZero": {"collection_names": "weights"},
    "TensorVariance": {"collection_names": "weights"},
    "UnchangedTensor": {"collection_names": "weights"},
}
# What tells these sick trainings from these healthy ones.
CHOSEN: dict[str, dict[str, str]] = REQUIRED | {
    "CheckInputImages": {"threshold_mean": "0.6"},
    "ClassImbalance": {"start_step": "250"},
    "Confusion": {"start_step": "40", "min_diag": "0.85", "max_off_diag": "0.15"},
    "FeatureImportanceOverweight": {"start_step": "20", "threshold": "0.96"},
    "LossNotDecreasing": {"num_steps": "5", "mode": "EVAL", "diff_percent": "0.3", "increase_threshold_percent": "50"},
    "Overfit": {"start_step": "20", "patience": "3", "ratio_threshold": "20"},
    "Overtraining": {"patience_train": "40", "patience_validation": "15", "delta": "0"},
    "PoorWeightInitialization": {"threshold": "100", "distribution_range": "1e-9", "patience": "10"},
    "SimilarAcrossRuns": {"collection_names": "weights", "start_step": "10"},
    "TensorVariance": {"collection_names": "weights", "max_threshold": "5"},
    "TreeDepth": {"depth": "6"},
    "VanishingGradient": {"threshold": "1e-10"},
}


@dataclass(frozen=True)
class Judgement:
    """What a rule said of a run.

    Attributes:
        rule: the rule.
        has_tensors: whether there was anything for it to look at.
        finding: what made it fire; None if it did not.
        agrees: whether the formula, computed by itself, says so too; None where nothing fired.
    """

    rule: str
    has_tensors: bool
    finding: Finding | None
    agrees: bool | None

    def __str__(self) -> str:
        if self.finding is None:
            return "." if self.has_tensors else ""
        return f"{self.finding.step}{'' if self.agrees else ' (?)'}"


def judge(name: str, trial: Trial, other: Trial, parameters: dict[str, str], output: Path) -> Judgement:
    """Evaluate a rule over a finished run.

    Args:
        name: of the rule.
        trial: the run.
        other: the same training with another seed.
        parameters: of the rule; start_step is given to the evaluation, as in a job, where the rule has none.
        output: folder for what the rule leaves.
    """
    found = find_built_in_rule(name)
    given = dict(parameters)
    declared = {parameter.name for parameter in found.parameters}
    start = 0 if "start_step" in declared else int(given.pop("start_step", "0"))
    rule = found(trial, [other] if found.compares_runs else None, **given)
    rule.output_dir = output
    verdict = evaluate(rule, start)
    finding = rule.finding if verdict.status == "IssuesFound" else None
    agrees = None if finding is None else bool(FORMULAS[name](rule, finding))
    return Judgement(name, rule.inspected > 0, finding, agrees)


def judge_all(
    trial: Trial, other: Trial, chosen: dict[str, dict[str, str]], framework: str, output: Path
) -> dict[str, Judgement]:
    """`judge` by all rules that are for a framework, by their names."""
    names = [name for name in list_names() if framework in find_built_in_rule(name).frameworks]
    return {name: judge(name, trial, other, chosen.get(name, {}), output) for name in names}


def _read(rule: BuiltInRule, finding: Finding, name: str | None = None, step: int | None = None) -> Any:
    """The value of a tensor at a global step, as the trial gives it to anybody."""
    value = rule.base_trial.tensor(name or finding.tensor).value(finding.step if step is None else step)
    return np.asarray(value, dtype=np.float64)


def _steps(rule: BuiltInRule, finding: Finding) -> list[int]:
    """Global steps of the finding's mode at which its tensor was saved, up to that of the finding."""
    trial, mode = rule.base_trial, finding.mode or ModeKeys.GLOBAL
    own = trial.tensor(finding.tensor).steps(mode)
    steps = [trial.global_step(mode, each) for each in own]
    return [each for each in steps if each is not None and each <= finding.step]


def _check_update_ratio(rule: BuiltInRule, finding: Finding) -> bool:
    before, now = (_read(rule, finding, step=each) for each in _steps(rule, finding)[-2:])
    with np.errstate(all="ignore"):
        ratio = np.abs(now - before).mean() / (np.abs(before).mean() + rule.values["epsilon"])
    return bool(ratio > rule.values["large_threshold"] or ratio < rule.values["small_threshold"])


def _check_loss(rule: BuiltInRule, finding: Finding) -> bool:
    trial, mode = rule.base_trial, finding.mode
    assert mode is not None
    assert finding.mode_step is not None
    back = finding.mode_step - rule.values["num_steps"]
    last = [each for each in trial.tensor(finding.tensor).steps(mode) if each <= back][-1]
    before, now = (float(trial.tensor(finding.tensor).value(each, mode).mean()) for each in (last, finding.mode_step))
    fall = 100 * (before - now) / abs(before)
    return not (
        fall >= rule.values["diff_percent"] if fall >= 0 else -fall <= rule.values["increase_threshold_percent"]
    )


def _check_overfit(rule: BuiltInRule, finding: Finding) -> bool:
    trial, is_validation = rule.base_trial, False
    phase: dict[bool, list[float]] = {False: [], True: []}
    if finding.tensor.startswith("validation"):
        train = finding.tensor.replace("validation", "train")
        phase = {False: [_read(rule, finding, train).item()], True: [_read(rule, finding).item()]}
    else:
        for step in (each for each in trial.steps() if each <= finding.step):
            if is_validation and trial.mode(step) is ModeKeys.TRAIN:
                phase = {False: [], True: []}
            is_validation = trial.mode(step) is ModeKeys.EVAL
            if trial.tensor(finding.tensor).has_step(step):
                phase[is_validation].append(_read(rule, finding, step=step).item())
    training, validation = np.mean(phase[False]), np.mean(phase[True])
    return bool((validation - training) / training > rule.values["ratio_threshold"])


def _check_overtraining(rule: BuiltInRule, finding: Finding) -> bool:
    best, waited = np.inf, 0
    for step in _steps(rule, finding):
        loss = _read(rule, finding, step=step).mean()
        best, waited = (loss, 0) if loss < best - rule.values["delta"] else (best, waited + 1)
    patience = rule.values["patience_validation" if " validation " in finding.text else "patience_train"]
    return waited == finding.value >= patience


def _check_start(rule: BuiltInRule, finding: Finding) -> bool:
    if finding.tensor.startswith("gradient"):
        low, high = np.percentile(_read(rule, finding), [5, 95])
        return bool(high - low < rule.values["distribution_range"])
    if "loss" in finding.tensor.lower():
        losses = [_read(rule, finding, step=step).mean() for step in _steps(rule, finding)]
        return len(losses) - 1 - int(np.argmin(losses)) >= rule.values["patience"]
    least = finding.text.partition("times that of ")[2].partition(",")[0]
    return bool(_read(rule, finding).var() > rule.values["threshold"] * _read(rule, finding, least).var())


def _check_nodes(rule: BuiltInRule, finding: Finding, is_active: Callable[[Any], Any]) -> bool:
    values = _read(rule, finding)
    active = 100 * is_active(values.reshape(len(values), -1)).mean(axis=0)
    return bool(100 * (active < rule.values["threshold_inactivity"]).mean() > rule.values["threshold_layer"])


def _check_confusion(rule: BuiltInRule, finding: Finding) -> bool:
    objective = "multi:" if _read(rule, finding, "predictions").ndim > 1 else "binary:"
    pairs = pair_classes(_read(rule, finding, "labels"), _read(rule, finding, "predictions"), objective)
    assert pairs is not None
    matrix = count_pairs(*pairs)
    with np.errstate(invalid="ignore"):
        shares = matrix / matrix.sum(axis=0)
    beside = shares - np.diag(shares.diagonal())
    return bool(
        np.nanmin(shares.diagonal()) < rule.values["min_diag"] or np.nanmax(beside) > rule.values["max_off_diag"]
    )


def _check_importance(rule: BuiltInRule, finding: Finding) -> bool:
    names = rule.base_trial.tensor_names(regex=rule.values["tensor_regex"], step=finding.step)
    values = sorted((_read(rule, finding, name).item() for name in names), reverse=True)
    return sum(values[: rule.values["nfeatures"]]) / sum(values) > rule.values["threshold"]


def _check_balance(rule: BuiltInRule, finding: Finding) -> bool:
    """Labels of all steps of the mode up to the one of the finding, and what was predicted."""
    predictions = finding.tensor.replace("labels", "predictions").replace("_input_1", "_input_0")
    labels, predicted = [], []
    for step in _steps(rule, finding):
        labels.append(_read(rule, finding, step=step).reshape(-1))
        scores = _read(rule, finding, predictions, step)
        predicted.append(scores.argmax(axis=1) if scores.ndim > 1 else scores)
    given, made = np.concatenate(labels), np.concatenate(predicted)
    classes, counts = np.unique(given, return_counts=True)
    wrong = max((made[given == each] != each).mean() for each in classes)
    return bool(
        counts.max() / counts.min() > rule.values["threshold_imbalance"]
        or wrong > rule.values["threshold_misprediction"]
    )


def _check_images(rule: BuiltInRule, finding: Finding) -> bool:
    images = np.concatenate([_read(rule, finding, step=step) for step in _steps(rule, finding)])
    return bool(np.abs(images.mean(axis=(0, 2, 3))).max() > rule.values["threshold_mean"])


def _check_same(rule: BuiltInRule, finding: Finding) -> bool:
    assert rule.other_trials is not None
    (other,) = rule.other_trials
    return np.array_equal(_read(rule, finding), other.tensor(finding.tensor).value(finding.step))


FORMULAS: dict[str, Callable[[BuiltInRule, Finding], Any]] = {
    "AllZero": lambda rule, found: 100 * (_read(rule, found) == 0).mean() >= rule.values["threshold"],
    "CheckInputImages": _check_images,
    "ClassImbalance": _check_balance,
    "Confusion": _check_confusion,
    "DeadRelu": lambda rule, found: _check_nodes(rule, found, lambda values: values > 0),
    "ExplodingTensor": lambda rule, found: not np.isfinite(_read(rule, found)).all(),
    "FeatureImportanceOverweight": _check_importance,
    "LossNotDecreasing": _check_loss,
    "Overfit": _check_overfit,
    "Overtraining": _check_overtraining,
    "PoorWeightInitialization": _check_start,
    "SaturatedActivation": lambda rule, found: _check_nodes(rule, found, lambda values: np.abs(values) <= 9.4999),
    "SimilarAcrossRuns": _check_same,
    "TensorVariance": lambda rule, found: (
        not (
            (rule.values["min_threshold"] or 0) <= _read(rule, found).var() <= (rule.values["max_threshold"] or np.inf)
        )
    ),
    "TreeDepth": lambda rule, found: np.floor(np.log2(_read(rule, found).max())) > rule.values["depth"],
    "UnchangedTensor": lambda rule, found: all(
        np.allclose(_read(rule, found), _read(rule, found, step=step)) for step in _steps(rule, found)[-3:]
    ),
    "VanishingGradient": lambda rule, found: np.abs(_read(rule, found)).mean() < rule.values["threshold"],
    "WeightUpdateRatio": _check_update_ratio,
}
