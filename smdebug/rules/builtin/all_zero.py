"""AllZero: tensors of nothing but zeros, or nearly so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.parameters import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from smdebug.rules.step_values import Place

_QUANTITY = "zeros (%)"
# Each of them is 0 only if every element is.
_ZERO_ONLY_IF_ALL = (("max", True), ("mean", True), ("sum", True), ("l1", False), ("l2", False), ("l1", True))


def compute_zero_percent(values: NDArray[Any]) -> float:
    """Percentage of elements that are 0; of an empty array 0."""
    return 100.0 * (values.size - int(np.count_nonzero(values))) / values.size if values.size else 0.0


class AllZero(BuiltInRule):
    """Fires at a step where the share of zeros in some tensor is at least threshold percent, on any worker.

    zeros = 100 * |{element = 0}| / elements, in percent. Of a tensor saved as reductions only, an absolute max, mean or
    sum or a norm of 0 says that all elements are 0, and one above 0 that not all are, which is enough at threshold 100.

    Looked at are the tensors of collection_names together with those in whose name tensor_regex is found; one of the
    two is required.

    Source: AWS's documentation of the rule AllZero (collection_names None, tensor_regex None, threshold 100 %).
    """

    parameters = (*TENSOR_CHOICE, number("threshold", 100.0, minimum=0.0, maximum=100.0))
    inspects: ClassVar[str] = "tensors chosen by collection_names or tensor_regex"
    needs: ClassVar[str] = "neither its values nor a reduction that tells was saved"
    frameworks: ClassVar[tuple[str, ...]] = ALL_FRAMEWORKS
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {"weights": {"save_interval": "500"}}
    example: ClassVar[Mapping[str, str]] = {"collection_names": "weights", "threshold": "90"}

    def __init__(self, base_trial: Any, other_trials: Any = None, **given: Any) -> None:
        super().__init__(base_trial, other_trials, **given)
        self.require_choice()

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor is zero at this global step; TensorUnavailableForStep if none can be judged."""
        names = self.chosen_names(step)
        selection = self.select(names, step)
        if selection is not None:
            zeros = 100.0 * selection.measure("zeros") / selection.measure("size")
            self.watch_nearest(_QUANTITY, step, selection, zeros, self.values["threshold"], "at or above")
            return self.inspect_doubtful(selection, step, zeros >= self.values["threshold"], self._judge)
        places = self.places(names, step)
        self.prefetch(places)
        return self.inspect(places, self._judge)

    def _judge(self, place: Place) -> bool | None:
        threshold: float = self.values["threshold"]
        values = self.read(place)
        if values is not None and not values.size:
            return False
        zeros = self._percent_by_reductions(place) if values is None else compute_zero_percent(values)
        if zeros is None:
            return None
        self.watch_at(_QUANTITY, place, zeros, threshold, "at or above")
        if zeros < threshold:
            return False
        return self.find_at(place, zeros, threshold, f"{zeros:.4g} % of its values are 0, threshold {threshold:g} %")

    def _percent_by_reductions(self, place: Place) -> float | None:
        found = (self.read_reduction(place, *key) for key in _ZERO_ONLY_IF_ALL)
        size = next((value for value in found if value is not None), None)
        if size is None:
            return None
        if size == 0:
            return 100.0
        return 0.0 if self.values["threshold"] == 100 else None
