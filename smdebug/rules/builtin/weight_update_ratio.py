"""WeightUpdateRatio: too large or too small weight changes between steps."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import CollectionKeys
from smdebug.reading.stacks import StackRows
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.measuring.moments import compute_abs_mean, widen
from smdebug.rules.measuring.row_measures import measure, measure_change
from smdebug.rules.parameters import integer, number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

# For runs whose collections file does not list them.
_NAMES = r"^(?!gradient).*(weight|kernel)"


def compute_update_ratio(update: Any, weight: Any, epsilon: float) -> Any:
    """mean(|now - before|) / (mean(|before|) + epsilon), of one tensor or of each of many; 0 where nothing changed.

    >>> compute_update_ratio(0.5, 2.0, 0.5)
    0.2
    >>> compute_update_ratio(np.array([0.0, 1.0]), np.array([0.0, 0.0]), 0.0).tolist()
    [0.0, inf]

    Args:
        update: mean(|now - before|) over all elements; NaN where values are none.
        weight: mean(|before|) over all elements.
        epsilon: what keeps the quotient of small weights small.
    """
    with np.errstate(all="ignore"):
        ratio = np.where(np.equal(update, 0), 0.0, np.divide(update, np.add(weight, epsilon)))
    return ratio if ratio.ndim else float(ratio)


def measure_update(now: NDArray[Any], before: NDArray[Any]) -> tuple[float, float]:
    """mean(|now - before|) and mean(|before|) over all elements.

    >>> measure_update(np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    (1.0, 1.0)
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return compute_abs_mean(widen(now) - widen(before)), compute_abs_mean(before)


class WeightUpdateRatio(BuiltInRule):
    """Fires where mean(|w - w0|) / (mean(|w0|) + epsilon) is above large_threshold or below small_threshold.

    w are the weights at the current step, and w0 those at the previous step at which the tensor was saved. With
    num_steps, w0 are those at the earliest saved step that is at most num_steps back, counted in steps of the mode. The
    ratio has no unit. The rule judges every tensor of the collection weights on every worker; if the collection lists
    none, every tensor that is named like a weight or kernel. It skips EVAL and PREDICT steps, which update no weights.

    Source: AWS's documentation of the rule WeightUpdateRatio (num_steps None, large_threshold 10.0, small_threshold
    0.00000001, epsilon 0.000000001). Dividing by the mean of the older weights is this project's choice.
    """

    parameters = (
        integer("num_steps", None, minimum=1),
        number("large_threshold", 10.0, minimum=0.0),
        number("small_threshold", 1e-8, minimum=0.0),
        number("epsilon", 1e-9, minimum=0.0),
    )
    inspects = "weights (collection weights) with their values"
    collections: ClassVar = {"weights": {"save_interval": "500"}}
    example: ClassVar = {"large_threshold": "5"}
    advice = (
        "Above: lower the learning rate or clip gradients. Below: raise it, or look for gradients of 0.",
        "Frozen weights do not change: train them, or exclude them from the collection weights.",
        "Weights that start at 0 make any update large: raise large_threshold or epsilon, or set start_step.",
    )

    def _prepare(self) -> None:
        large, small = self.values["large_threshold"], self.values["small_threshold"]
        if small > large:
            raise self.refuse(f"small_threshold {small:g} is above large_threshold {large:g}.")
        self._limits = (
            Limit("largest mean update / mean weight", large),
            Limit("smallest mean update / mean weight", small, "below"),
        )

    def invoke_at_step(self, step: int) -> bool:
        """Whether weights moved too far or too little up to this global step."""
        if not self.is_training_step(step):
            return False
        names = self.tensors.choose(step, [CollectionKeys.WEIGHTS]) or self.tensors.choose(step, (), [_NAMES])
        steps = self.tensors.steps_before(step, 2) if self.values["num_steps"] is None else ()
        rows = self.tensors.stack(names, step) if len(steps) == 2 else None
        before = self.tensors.stack(names, steps[0]) if rows is not None else None
        if rows is None or before is None or not rows.is_like(before):
            return self.inspect(self.tensors.saved(names, step), self._judge)
        return self.inspect_measured(names, step, self._limits, lambda now: self._measure(now, before), self._judge)

    def shortage(self) -> str:
        """Say that there was no earlier step to compare with."""
        num_steps = self.values["num_steps"]
        if self.watched_quantities:
            return ""
        if num_steps is None:
            return "no weight was saved at two training steps. Save weights more often, or train for longer."
        return (
            f"no weight was saved at two training steps that are at most num_steps ({num_steps}) apart. Save weights "
            "more often, or raise num_steps to their save_interval."
        )

    def _measure(self, rows: StackRows, before: StackRows) -> NDArray[np.float64]:
        update, weight = measure_change(rows, before), measure(before, "abs_mean")
        ratios: NDArray[np.float64] = compute_update_ratio(update, weight, self.values["epsilon"])
        return ratios

    def _judge(self, place: WorkerTensor) -> bool | None:
        now = self.tensors.read(place)
        if now is None:
            return None
        earlier = self._find_earlier(place)
        there = [] if earlier is None else self.tensors.saved([place.name], earlier)
        before = next((self.tensors.read(each) for each in there if each.worker == place.worker), None)
        if before is None or before.shape != now.shape or not now.size:
            return False
        ratio = compute_update_ratio(*measure_update(now, before), self.values["epsilon"])

        def describe(limit: Limit) -> str:
            bound = "below small_threshold" if limit.fires == "below" else "above large_threshold"
            return f"mean update / mean weight since step {earlier} is {ratio:.6g}, {bound} {limit.threshold:g}"

        return self.weigh(place, ratio, self._limits, describe)

    def _find_earlier(self, place: WorkerTensor) -> int | None:
        """Return the global step to compare with; None if there is none yet."""
        num_steps: int | None = self.values["num_steps"]
        steps = self.tensors.steps_of(place.name, place.step, 2 if num_steps is None else num_steps + 1)[:-1]
        if num_steps is not None:
            mode_step = self.base_trial.mode_step(place.step)
            assert mode_step is not None
            steps = [step for step in steps if (self.base_trial.mode_step(step) or 0) >= mode_step - num_steps]
        return steps[0] if steps else None
