"""TensorVariance: tensors with too large or too small variance."""

import math
from typing import ClassVar

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.moments import VARIANCE_REDUCTIONS, read_variance
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

_WITHOUT_THRESHOLD = "neither max_threshold nor min_threshold is given. Give one of them."


class TensorVariance(BuiltInRule):
    """Fires at a step where a tensor's variance is above max_threshold or below min_threshold, on any worker.

    variance = mean((x - mean(x))^2) over all elements, in the square of the tensor's unit. If only reductions were
    saved, it is the saved variance, else the square of the saved std (PyTorch's divide by n - 1). NaN is neither above
    nor below.

    The rule inspects the tensors of collection_names, and those whose names match tensor_regex; one of the two is
    required. With neither threshold, the rule never fires: the verdict says that it judged nothing, and the report
    shows the largest variance of each step, from which you can choose thresholds.

    Source: AWS's documentation of the rule TensorVariance (collection_names None, tensor_regex None, max_threshold
    None, min_threshold None).
    """

    parameters = (
        *TENSOR_CHOICE,
        number("max_threshold", None, minimum=0.0),
        number("min_threshold", None, minimum=0.0),
    )
    inspects = "tensors chosen by collection_names or tensor_regex"
    needs = "neither its values nor their variance or std was saved"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"weights": {"save_interval": "500"}}
    example: ClassVar = {
        "collection_names": "weights",
        "max_threshold": "10",
        "min_threshold": "0.00001",
    }
    advice = (
        "Too large: lower the learning rate, clip gradients, or add weight decay or normalization.",
        "Too small: look for weights that started at a constant, a vanishing gradient, or an input that never changes.",
        "Variances differ between layers: choose similar tensors by tensor_regex, and thresholds from the rule's plot.",
    )

    def _prepare(self) -> None:
        self.require_choice()
        highest, lowest = self.values["max_threshold"], self.values["min_threshold"]
        if highest is not None and lowest is not None and lowest > highest:
            raise self.refuse(f"min_threshold {lowest:g} is above max_threshold {highest:g}.")
        self._limits = [] if lowest is None else [Limit("smallest variance", lowest, "below")]
        if highest is not None or lowest is None:
            # No variance is above infinity: without a threshold they are shown only.
            self._limits.insert(0, Limit("largest variance", math.inf if highest is None else highest))
        self._has_threshold = highest is not None or lowest is not None
        if not self._has_threshold:
            self.logger.warning("Rule %s cannot fire: %s", self.rule_name, _WITHOUT_THRESHOLD)

    def shortage(self) -> str:
        """Say that nothing can be found where no threshold is given."""
        return super().shortage() if self._has_threshold else _WITHOUT_THRESHOLD

    def invoke_at_step(self, step: int) -> bool:
        """Whether a variance is out of bounds at this global step; TensorUnavailableForStep if none is known."""
        return self.inspect_measured(
            self.chosen_names(step),
            step,
            self._limits,
            lambda rows: measure(rows, "variance"),
            self._judge,
            VARIANCE_REDUCTIONS,
        )

    def _judge(self, place: WorkerTensor) -> bool | None:
        variance = read_variance(self.tensors, place)
        if variance is None:
            return None

        def describe(limit: Limit) -> str:
            bound = "below min_threshold" if limit.fires == "below" else "above max_threshold"
            return f"its variance is {variance:.6g}, {bound} {limit.threshold:g}"

        return self.weigh(place, variance, self._limits, describe)
