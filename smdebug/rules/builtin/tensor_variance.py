"""TensorVariance: tensors that scatter too much or too little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, INEXACT, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.moments import VARIANCE_REDUCTIONS, read_variance
from smdebug.rules.parameters import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smdebug.rules.step_batch import Selection
    from smdebug.rules.step_values import Place

_LARGEST, _SMALLEST = "largest variance", "smallest variance"


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
    inspects: ClassVar[str] = "tensors chosen by collection_names or tensor_regex"
    needs: ClassVar[str] = "neither its values nor their variance or std was saved"
    frameworks: ClassVar[tuple[str, ...]] = ALL_FRAMEWORKS
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {"weights": {"save_interval": "500"}}
    example: ClassVar[Mapping[str, str]] = {
        "collection_names": "weights",
        "max_threshold": "10",
        "min_threshold": "0.00001",
    }

    def __init__(self, base_trial: Any, other_trials: Any = None, **given: Any) -> None:
        super().__init__(base_trial, other_trials, **given)
        self.require_choice()
        if self.values["max_threshold"] is None and self.values["min_threshold"] is None:
            raise self.refuse("max_threshold or min_threshold is required: without one it could never fire.")

    def invoke_at_step(self, step: int) -> bool:
        """Whether a variance is out of bounds at this global step; TensorUnavailableForStep if none is known."""
        names = self.chosen_names(step)
        selection = self.select(names, step, VARIANCE_REDUCTIONS)
        if selection is not None:
            return self._judge_together(selection, step)
        places = self.places(names, step)
        self.prefetch(places, VARIANCE_REDUCTIONS)
        return self.inspect(places, self._judge)

    def _judge_together(self, selection: Selection, step: int) -> bool:
        variances = selection.measure("variance")
        doubtful = ~np.isfinite(variances)
        highest, lowest = self.values["max_threshold"], self.values["min_threshold"]
        if highest is not None:
            self.watch_nearest(_LARGEST, step, selection, variances, highest)
            doubtful |= variances > highest * (1 - INEXACT)
        if lowest is not None:
            self.watch_nearest(_SMALLEST, step, selection, variances, lowest, "below")
            doubtful |= variances < lowest * (1 + INEXACT)
        return self.inspect_doubtful(selection, step, doubtful, self._judge)

    def _judge(self, place: Place) -> bool | None:
        variance = read_variance(self, place)
        if variance is None:
            return None
        highest, lowest = self.values["max_threshold"], self.values["min_threshold"]
        if highest is not None:
            self.watch_at(_LARGEST, place, variance, highest)
        if lowest is not None:
            self.watch_at(_SMALLEST, place, variance, lowest, "below")
        if highest is not None and variance > highest:
            return self.find_at(
                place, variance, highest, f"its variance is {variance:.6g}, above max_threshold {highest:g}"
            )
        if lowest is not None and variance < lowest:
            return self.find_at(
                place, variance, lowest, f"its variance is {variance:.6g}, below min_threshold {lowest:g}"
            )
        return False
