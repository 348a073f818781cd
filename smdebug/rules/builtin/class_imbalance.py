"""ClassImbalance: rare classes, and classes rarely predicted correctly."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, BuiltInRule
from smdebug.rules.measuring.classes import IGNORED, order_scores, to_labels, to_predicted
from smdebug.rules.parameters import boolean, integer, number, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun

# What PyTorch's and MXNet's loss modules are given: predictions first, labels second. Those of a regression
# (MSELoss, SmoothL1Loss, l2loss0, huberloss0) have no classes, though their labels may be whole numbers.
_CLASSES_LOSS = r"(?i)(?<!mse)(?<!l1)(?<!l2)(?<!huber)loss\d*"
_LOSS_INPUTS = {"labels_regex": rf"{_CLASSES_LOSS}_input_1$", "predictions_regex": rf"{_CLASSES_LOSS}_input_0$"}


def compute_imbalance(counts: Mapping[int, int]) -> float:
    """Largest count of a class divided by the smallest; classes never seen are not known.

    >>> compute_imbalance({0: 30, 1: 10})
    3.0
    """
    return max(counts.values()) / min(counts.values()) if counts else 1.0


class ClassImbalance(BuiltInRule):
    """Fires once `samples` labels were seen in a mode, if classes are imbalanced or a class is often mispredicted.

    The rule fires if one of two ratios, which have no unit, is above its threshold:

    * imbalance = labels of the most frequent class / labels of the rarest class that occurs > threshold_imbalance;
    * misprediction = samples of a class that were predicted as another class / samples of that class >
      threshold_misprediction.

    Both count all labels that were saved so far in the step's mode, over all workers, except -100, which PyTorch's
    losses ignore. The misprediction counts only samples whose prediction was saved.

    Labels are whole numbers or one-hot rows. Predictions are one score per class, of which the highest counts, or class
    numbers, or probabilities of class 1; argmax True says that they are scores where their shape does not show it. The
    classes are on the last axis of the scores, or on the second as in PyTorch's losses; if the shape fits both,
    mispredictions are not counted.

    If no tensor is named labels or predictions, the default regexes choose the inputs of a loss module instead, other
    than MSELoss, L1Loss and HuberLoss. If there are several tensors of labels, the first by name belongs to the first
    tensor of predictions, and so on.

    Source: AWS's documentation of the rule ClassImbalance (threshold_imbalance 10, threshold_misprediction 0.7, samples
    500, argmax False, labels_regex .*labels, predictions_regex .*predictions).
    """

    parameters = (
        number("threshold_imbalance", 10.0, minimum=1.0),
        number("threshold_misprediction", 0.7, minimum=0.0, maximum=1.0),
        integer("samples", 500, minimum=1),
        boolean("argmax", default=False),
        regex("labels_regex", ".*labels"),
        regex("predictions_regex", ".*predictions"),
    )
    inspects = "labels and predictions (labels_regex, predictions_regex)"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {
        "labels_and_predictions": {"include_regex": "labels|predictions|[Ll]oss.*_input_", "save_interval": "50"}
    }
    example: ClassVar = {"samples": "1000", "threshold_imbalance": "20"}
    configure = (
        "XGBoost: save the collections labels and predictions. PyTorch and MXNet: save the inputs of the loss module "
        "(`CrossEntropyLoss_input_0` are the scores, `CrossEntropyLoss_input_1` the labels), or save the two tensors "
        "under names of your own and give regexes for them."
    )
    advice = (
        "Sample rare classes more often, or weight them in the loss (weight=, class_weight, scale_pos_weight).",
        "A class that is always mispredicted may have wrong labels: look at some of its samples.",
        "If classes really are this rare, raise threshold_imbalance, and judge the model by the recall of each class.",
    )

    def _prepare(self) -> None:
        self._labels: dict[ModeKeys | None, dict[int, int]] = {}
        self._predicted: dict[ModeKeys | None, dict[int, int]] = {}
        self._wrong: dict[ModeKeys | None, dict[int, int]] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether the labels up to this global step are imbalanced or mispredicted."""
        mode = self.base_trial.mode(step)
        counts = self._labels.setdefault(mode, {})
        names = self._names("labels_regex", step)
        partners = self._names("predictions_regex", step)
        for at, name in enumerate(names):
            self._count(name, partners[at] if at < len(partners) else None, step, mode)
        total = sum(counts.values())
        if not names or total < self.values["samples"]:
            return False
        return self._judge(names[0], step, mode)

    def shortage(self) -> str:
        """Say that too few labels were saved."""
        if self.watched_quantities:
            return ""
        most = max((sum(counts.values()) for counts in self._labels.values()), default=0)
        return (
            f"it has to see {count_noun(self.values['samples'], 'label')} of a mode (samples), and saw {most}. Save "
            "labels more often, train for longer, or lower samples."
        )

    def _names(self, parameter: str, step: int) -> list[str]:
        names = self.tensors.choose(step, (), self.values[parameter])
        if not names and self.is_default(parameter):
            names = self.tensors.choose(step, (), [_LOSS_INPUTS[parameter]])
        return names

    def _count(self, name: str, partner: str | None, step: int, mode: ModeKeys | None) -> None:
        wrong, of_class = self._wrong.setdefault(mode, {}), self._predicted.setdefault(mode, {})
        predictions = {place.worker: place for place in self.tensors.saved([partner] if partner else [], step)}
        for place in self.tensors.saved([name], step):
            values = self.tensors.read(place)
            labels = None if values is None else to_labels(values)
            if labels is None:
                continue
            self.inspected += 1
            is_counted = labels != IGNORED
            _add(self._labels[mode], labels[is_counted])
            other = predictions.get(place.worker)
            saved = None if other is None else self.tensors.read(other)
            scores = None if saved is None or values is None else order_scores(saved, values)
            predicted = None if scores is None else to_predicted(scores, labels, argmax=self.values["argmax"])
            if predicted is not None:
                _add(of_class, labels[is_counted])
                _add(wrong, labels[is_counted & (predicted != labels)])

    def _judge(self, name: str, step: int, mode: ModeKeys | None) -> bool:
        counts, predicted, wrong = self._labels[mode], self._predicted[mode], self._wrong[mode]
        imbalance = compute_imbalance(counts)
        shares = {each: wrong.get(each, 0) / count for each, count in predicted.items()}
        worst = max(shares, key=shares.__getitem__, default=0)
        fraction = shares.get(worst, 0.0)
        most, least = max(counts, key=lambda each: counts[each]), min(counts, key=lambda each: counts[each])
        imbalances = Limit("labels of the most / of the least frequent class", self.values["threshold_imbalance"])
        mispredictions = Limit("largest mispredicted share of a class", self.values["threshold_misprediction"])
        self.watch_limit(imbalances, step, imbalance, name)
        self.watch_limit(mispredictions, step, fraction, name)
        if imbalances.is_passed_by(imbalance):
            text = (
                f"there are {count_noun(counts[most], 'label')} of class {most} and {counts[least]} of class {least}, "
                f"{imbalance:.4g} times as many, above threshold_imbalance {imbalances.threshold:g}"
            )
            return self.find(name, step, imbalance, imbalances.threshold, text)
        if mispredictions.is_passed_by(fraction):
            text = (
                f"the mispredicted share of the {count_noun(predicted[worst], 'sample')} of class {worst} is "
                f"{fraction:.4g}, above threshold_misprediction {mispredictions.threshold:g}"
            )
            return self.find(name, step, fraction, mispredictions.threshold, text)
        return False


def _add(counts: dict[int, int], classes: NDArray[np.int64]) -> None:
    found, numbers = np.unique(classes, return_counts=True)
    for each, count in zip(found.tolist(), numbers.tolist(), strict=True):
        counts[each] = counts.get(each, 0) + count
