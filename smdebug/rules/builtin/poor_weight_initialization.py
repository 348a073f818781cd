"""PoorWeightInitialization: initial weights that prevent learning."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.measuring.activations import RELU, ActivationFinder, build_names_regex
from smdebug.rules.measuring.losses import Patience, read_phase_losses
from smdebug.rules.measuring.moments import VARIANCE_REDUCTIONS, read_variance
from smdebug.rules.parameters import integer, number, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun
from smdebug.trials.step_tensors import WorkerTensor

_COLLECTION = "relu_input"
_GRADIENT_NAMES = "^gradients?/"
_LOSS_QUANTITY = "steps without a lower loss"


def compute_variance_ratio(variances: Sequence[float]) -> float:
    """Largest variance divided by the smallest; infinite where only the smallest is 0, 1 where all are or one is.

    >>> compute_variance_ratio([0.5, 4.0]), compute_variance_ratio([0.0, 4.0]), compute_variance_ratio([0.0])
    (8.0, inf, 1.0)
    """
    smallest, largest = min(variances), max(variances)
    if smallest == largest:
        return 1.0
    return largest / smallest if smallest else math.inf


def compute_spread(values: NDArray[Any]) -> float:
    """95th percentile minus 5th percentile, interpolated linearly between elements.

    >>> compute_spread(np.arange(101.0))
    90.0
    """
    low, high = np.percentile(values.astype(np.float64), [5, 95])
    return float(high - low)


class PoorWeightInitialization(BuiltInRule):
    """Fires if one of three signs of poor initial weights shows in the first `steps` saved steps of training.

    1. The variances of the layers' activation inputs differ too much: largest / smallest > threshold (no unit; needs at
       least two layers). A saved variance, or the square of a saved std, is used if there is one.
    2. The elements of a gradient are too close together: p95 - p5 < distribution_range (unit of the gradient).
       Gradients with a single element are left out.
    3. The training loss has not fallen below its lowest value for `patience` consecutive saved steps.

    EVAL and PREDICT steps are not judged. Each worker is judged separately; the loss is the mean of all workers.

    With the default regex, the rule also inspects the collection relu_input, tensors with the names that Keras, MXNet
    and PyTorch give to the input of a ReLU, and inputs of modules for which saved output = max(saved input, 0).

    Source: AWS's documentation of the rule PoorWeightInitialization (activation_inputs_regex .*relu_input, threshold
    10.0, distribution_range 0.001, patience 5, steps 10).
    """

    parameters = (
        regex("activation_inputs_regex", ".*relu_input"),
        number("threshold", 10.0, minimum=1.0),
        number("distribution_range", 0.001, minimum=0.0),
        integer("patience", 5, minimum=1),
        integer("steps", 10, minimum=1),
    )
    inspects = "activation inputs, gradients and losses"
    collections: ClassVar = {
        _COLLECTION: {"include_regex": "relu.*_input", "save_interval": "1", "end_step": "10"},
        CollectionKeys.GRADIENTS: {"save_interval": "1", "end_step": "10"},
        CollectionKeys.LOSSES: {"save_interval": "1", "end_step": "10"},
    }
    example: ClassVar = {"steps": "20", "threshold": "20"}
    configure = (
        "Save the inputs of the ReLUs into the collection relu_input. In PyTorch an input is named after its module "
        "(`relu1_input_0`, `features.2_input_0`), so give the modules' names in the collection's include_regex. A job "
        "with save_all does not need this, because the rule then recognises a ReLU by its input and output."
    )
    advice = (
        "Initialize by the layer's width: He for ReLU, Xavier for tanh and sigmoid, and standardize the inputs.",
        "Put BatchNorm or LayerNorm between layers whose variances differ, and warm up the learning rate.",
        "Biases before a BatchNorm have gradients of 0: lower distribution_range. Noisy batch losses: raise patience.",
    )

    def _prepare(self) -> None:
        self._finder = ActivationFinder(self.tensors.read_first)
        self._patience = Patience()
        self._seen = 0

    def invoke_at_step(self, step: int) -> bool:
        """Whether a sign of poorly chosen weights shows at this global step."""
        if self._seen >= self.values["steps"] or not self.is_training_step(step):
            return False
        self._seen += 1
        # All three are asked, so that the loss is counted whatever the others say.
        loss_is_stuck = self._judge_loss(step)
        return self._judge_variances(step) or self._judge_gradients(step) or loss_is_stuck

    def shortage(self) -> str:
        """Say that it found nothing but losses, and of these too few."""
        if not set(self.watched_quantities) <= {_LOSS_QUANTITY}:
            return ""
        patience: int = self.values["patience"]
        if self._patience.seen > patience:
            return ""
        return (
            f"it found losses alone, at {count_noun(self._patience.seen, 'training step')}, and needs more of these "
            f"than patience ({patience}). Save them more often, lower patience, or save activation inputs and "
            "gradients, too."
        )

    def _judge_loss(self, step: int) -> bool:
        loss, _, names = read_phase_losses(self.tensors, step, self.base_trial.mode(step))
        self.inspected += len(names)
        if loss is None:
            return False
        waited, best = self._patience.add(loss, 0.0), self._patience.best
        return self.weigh_number(
            names[0],
            step,
            waited,
            [Limit(_LOSS_QUANTITY, self.values["patience"], "at or above")],
            lambda limit: (
                f"the loss {loss:.6g} has not come below {best:.6g} for {count_noun(waited, 'step')}; patience is "
                f"{limit.threshold:g}"
            ),
        )

    def _judge_variances(self, step: int) -> bool:
        by_worker: dict[str, dict[str, float]] = {}
        places = self.tensors.saved(self._input_names(step), step)
        self.tensors.prefetch(places, VARIANCE_REDUCTIONS)
        for place in places:
            variance = read_variance(self.tensors, place)
            if variance is not None and math.isfinite(variance):
                by_worker.setdefault(place.worker, {})[place.name] = variance
                self.inspected += 1
        return any(self._judge_layers(step, worker, variances) for worker, variances in by_worker.items())

    def _judge_layers(self, step: int, worker: str, variances: dict[str, float]) -> bool:
        ratio = compute_variance_ratio(list(variances.values()))
        most, least = (pick(variances, key=lambda name: variances[name]) for pick in (max, min))
        return self.weigh_number(
            most,
            step,
            ratio,
            [Limit("largest / smallest variance of a layer's input", self.values["threshold"])],
            lambda limit: (
                f"the variance of its values, {variances[most]:.4g}, is {ratio:.4g} times that of {least}, "
                f"{variances[least]:.4g}, above threshold {limit.threshold:g}"
            ),
            worker,
        )

    def _judge_gradients(self, step: int) -> bool:
        names = self.tensors.choose(step, (CollectionKeys.GRADIENTS,), [_GRADIENT_NAMES])
        return any(self._judge_gradient(place) for place in self.tensors.saved(names, step))

    def _judge_gradient(self, place: WorkerTensor) -> bool:
        values = self.tensors.read(place)
        if values is None or values.size < 2:
            return False
        self.inspected += 1
        spread = compute_spread(values)
        return self.weigh(
            place,
            spread,
            [Limit("smallest spread of a gradient (p95 - p5)", self.values["distribution_range"], "below")],
            lambda limit: (
                f"its 5th and 95th percentiles are {spread:.4g} apart, less than distribution_range {limit.threshold:g}"
                if spread
                else f"its 5th and 95th percentiles are equal; distribution_range is {limit.threshold:g}"
            ),
        )

    def _input_names(self, step: int) -> list[str]:
        names = set(self.tensors.choose(step, (), self.values["activation_inputs_regex"]))
        if self.is_default("activation_inputs_regex"):
            names.update(self.tensors.choose(step, (_COLLECTION,), [build_names_regex([RELU], "input")]))
            found = self._finder.find(self.tensors.names(step), step)
            names.update(given for (given, _), kind in found.items() if kind == RELU)
        return sorted(names)
