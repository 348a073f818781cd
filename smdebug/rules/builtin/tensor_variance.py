"""TensorVariance: tensors that scatter too much or too little."""

from typing import ClassVar

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.moments import VARIANCE_REDUCTIONS, read_variance
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import Place


class TensorVariance(BuiltInRule):
    """Fires at a step where the variance of some tensor is above max_threshold or below min_threshold, on any worker.

    variance = mean((x - mean(x))^2) over all elements, in the square of the tensor's unit; where only reductions were
    saved, the saved variance, else the square of the saved std (PyTorch's divide by n - 1). NaN is neither above nor
    below.

    Looked at are the tensors of collection_names together with those in whose name tensor_regex is found; one of the
    two is required, and so is one of the thresholds.

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

    def _prepare(self) -> None:
        self.require_choice()
        if self.values["max_threshold"] is None and self.values["min_threshold"] is None:
            raise self.refuse("max_threshold or min_threshold is required: without one it could never fire.")
        limits = (
            Limit("largest variance", self.values["max_threshold"]),
            Limit("smallest variance", self.values["min_threshold"], "below"),
        )
        self._limits = [limit for limit in limits if limit.threshold is not None]

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

    def _judge(self, place: Place) -> bool | None:
        variance = read_variance(self.tensors, place)
        if variance is None:
            return None

        def describe(limit: Limit) -> str:
            bound = "below min_threshold" if limit.fires == "below" else "above max_threshold"
            return f"its variance is {variance:.6g}, {bound} {limit.threshold:g}"

        return self.weigh(place, variance, self._limits, describe)
