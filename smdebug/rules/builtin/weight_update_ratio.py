"""WeightUpdateRatio: weights that move too far, or hardly at all, between two steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.config.collection_keys import CollectionKeys
from smdebug.rules.built_in_rule import INEXACT, BuiltInRule
from smdebug.rules.moments import compute_abs_mean, widen
from smdebug.rules.parameters import integer, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from smdebug.rules.step_values import Place

_LARGEST, _SMALLEST = "largest mean update / mean weight", "smallest mean update / mean weight"
# For runs whose collections file does not list them.
_NAMES = r"^(?!gradient).*(weight|kernel)"


def compute_update_ratio(before: NDArray[Any], now: NDArray[Any], epsilon: float) -> float:
    """mean(|now - before|) / (mean(|before|) + epsilon), both over all elements; NaN where values are none."""
    with np.errstate(invalid="ignore", over="ignore"):
        update = compute_abs_mean(widen(now) - widen(before))
        weight = compute_abs_mean(before) + epsilon
    return update / weight if weight else math.inf if update else 0.0


class WeightUpdateRatio(BuiltInRule):
    """Fires where ratio = mean(|w - w0|) / (mean(|w0|) + epsilon) is above large_threshold or below small_threshold.

    w are the weights of the current step, w0 those of the step that the tensor was saved at before; with num_steps,
    those of the earliest step saved that is at most num_steps back, counted in the mode's own steps. The ratio has no
    unit. Judged is every tensor of the collection weights (or, where it lists none, every one named like a weight or
    kernel) on every worker, in TRAIN steps and steps without a mode: EVAL and PREDICT update nothing.

    Source: AWS's documentation of the rule WeightUpdateRatio (num_steps None, large_threshold 10.0, small_threshold
    0.00000001, epsilon 0.000000001). That the mean of the older weights divides is ours.
    """

    parameters = (
        integer("num_steps", None, minimum=1),
        number("large_threshold", 10.0, minimum=0.0),
        number("small_threshold", 1e-8, minimum=0.0),
        number("epsilon", 1e-9, minimum=0.0),
    )
    inspects: ClassVar[str] = "weights (collection weights) with their values"
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {"weights": {"save_interval": "500"}}
    example: ClassVar[Mapping[str, str]] = {"large_threshold": "5"}

    def invoke_at_step(self, step: int) -> bool:
        """Whether weights moved too far or too little up to this global step."""
        if not self.is_training_step(step):
            return False
        names = self.choose_names(step, [CollectionKeys.WEIGHTS], None) or self.choose_names(step, (), [_NAMES])
        together = self._judge_together(names, step)
        if together is not None:
            return together
        places = self.places(names, step)
        self.prefetch(places)
        return self.inspect(places, self._judge)

    def _judge_together(self, names: list[str], step: int) -> bool | None:
        """What small tensors say that were all saved at the step before; None if that is not so."""
        steps = self.steps_before(step, 2) if self.values["num_steps"] is None else ()
        selection = self.select(names, step) if len(steps) == 2 else None
        before = self.select(names, steps[0]) if selection is not None else None
        if selection is None or before is None or not selection.is_like(before):
            return None
        with np.errstate(all="ignore"):
            ratios = selection.measure_change(before) / (before.measure("abs_mean") + self.values["epsilon"])
        large, small = self.values["large_threshold"], self.values["small_threshold"]
        self.watch_nearest(_LARGEST, step, selection, ratios, large)
        self.watch_nearest(_SMALLEST, step, selection, ratios, small, "below")
        fine = (ratios > small * (1 + INEXACT)) & (ratios < large * (1 - INEXACT))
        return self.inspect_doubtful(selection, step, ~fine, self._judge)

    def _judge(self, place: Place) -> bool | None:
        now = self.read(place)
        if now is None:
            return None
        earlier = self._find_earlier(place)
        there = [] if earlier is None else self.places([place.name], earlier)
        before = next((self.read(each) for each in there if each.worker == place.worker), None)
        if before is None or before.shape != now.shape or not now.size:
            return False
        ratio = compute_update_ratio(before, now, self.values["epsilon"])
        large, small = self.values["large_threshold"], self.values["small_threshold"]
        self.watch_at(_LARGEST, place, ratio, large)
        self.watch_at(_SMALLEST, place, ratio, small, "below")
        since = f"mean update / mean weight since step {earlier} is {ratio:.6g}"
        if ratio > large:
            return self.find_at(place, ratio, large, f"{since}, above large_threshold {large:g}")
        if ratio < small:
            return self.find_at(place, ratio, small, f"{since}, below small_threshold {small:g}")
        return False

    def _find_earlier(self, place: Place) -> int | None:
        """The global step to compare with; None if there is none yet."""
        num_steps: int | None = self.values["num_steps"]
        steps = self.earlier_steps(place.name, place.step, 2 if num_steps is None else num_steps + 1)[:-1]
        if num_steps is not None:
            mode_step = self.base_trial.mode_step(place.step)
            assert mode_step is not None
            steps = [step for step in steps if (self.base_trial.mode_step(step) or 0) >= mode_step - num_steps]
        return steps[0] if steps else None
