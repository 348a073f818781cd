"""AllZero: tensors of nothing but zeros, or nearly so."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.reading.stacks import StackRows
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

# Each of them is 0 only if every element is.
_ZERO_ONLY_IF_ALL = (("max", True), ("mean", True), ("sum", True), ("l1", False), ("l2", False), ("l1", True))


def compute_zero_percent(zeros: Any, size: Any) -> Any:
    """Percentage of elements that are 0, of one tensor or of each of many.

    >>> compute_zero_percent(3, 4)
    75.0
    """
    return 100.0 * zeros / size


def _measure(rows: StackRows) -> NDArray[np.float64]:
    found: NDArray[np.float64] = compute_zero_percent(measure(rows, "zeros"), measure(rows, "size"))
    return found


class AllZero(BuiltInRule):
    """Fires at a step where at least threshold percent of a tensor's elements are 0, on any worker.

    zeros = 100 * |{element = 0}| / elements, in percent. If only reductions of a tensor were saved, an absolute max,
    mean or sum, or a norm, of 0 shows that all elements are 0. A value above 0 shows only that not all are, which is
    enough for a verdict at threshold 100.

    The rule inspects the tensors of collection_names, and those whose names match tensor_regex; one of the two is
    required.

    Source: AWS's documentation of the rule AllZero (collection_names None, tensor_regex None, threshold 100 %).
    """

    parameters = (*TENSOR_CHOICE, number("threshold", 100.0, minimum=0.0, maximum=100.0))
    inspects = "tensors chosen by collection_names or tensor_regex"
    needs = "neither its values nor a reduction that shows whether they are 0 was saved"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"weights": {"save_interval": "500"}}
    example: ClassVar = {"collection_names": "weights", "threshold": "90"}
    advice = (
        "The plot shows at which step the zeros begin: check the learning rate and the initialization of that layer.",
        "Weights of 0 do not train: initialize them otherwise, or look for a part that the loss does not reach.",
        "Masks, and biases that start at 0, are zero on purpose: exclude them with a narrower tensor_regex.",
    )

    def _prepare(self) -> None:
        self.require_choice()
        self._limits = [Limit("zeros (%)", self.values["threshold"], "at or above")]

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor is zero at this global step; TensorUnavailableForStep if none can be judged."""
        return self.inspect_measured(self.chosen_names(step), step, self._limits, _measure, self._judge)

    def _judge(self, place: WorkerTensor) -> bool | None:
        values = self.tensors.read(place)
        if values is not None and not values.size:
            return False
        if values is None:
            zeros = self._percent_by_reductions(place)
        else:
            zeros = compute_zero_percent(values.size - int(np.count_nonzero(values)), values.size)
        if zeros is None:
            return None
        return self.weigh(
            place,
            zeros,
            self._limits,
            lambda limit: f"{zeros:.4g} % of its values are 0, threshold {limit.threshold:g} %",
        )

    def _percent_by_reductions(self, place: WorkerTensor) -> float | None:
        found = (self.tensors.read_reduction(place, *key) for key in _ZERO_ONLY_IF_ALL)
        size = next((value for value in found if value is not None), None)
        if size is None:
            return None
        if size == 0:
            return 100.0
        return 0.0 if self.values["threshold"] == 100 else None
