"""VanishingGradient: gradients have become too small for the weights to move."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.parameters import number

_COLLECTION = "gradients"
# For runs whose collections file does not list them: PyTorch's and MXNet's gradient/, TensorFlow's gradients/.
_NAMES = "^gradients?/"
_ABS_MEAN = ("mean", True)


def has_vanished(abs_mean: float, threshold: float) -> bool:
    """Whether the mean of a gradient's absolute values is below the threshold; NaN is not."""
    return abs_mean < threshold


class VanishingGradient(BuiltInRule):
    """Fires at a step where some gradient's mean(|g|) < threshold, on any worker.

    mean(|g|) is the saved abs_mean reduction, where there is one, else computed over all elements of the saved
    gradient; it has the gradient's unit (loss per unit of weight). Gradients are the tensors of the collection
    `gradients`, or those named gradient/... or gradients/... where it lists none.

    Source: AWS's documentation of the rule VanishingGradient (threshold, default 0.0000001).
    """

    parameters = (number("threshold", 1e-7, minimum=0.0),)
    inspects: ClassVar[str] = "gradients (collection gradients), saved as values or as their abs_mean"

    def invoke_at_step(self, step: int) -> bool:
        """Whether a gradient has vanished at this global step; TensorUnavailableForStep if none can be judged."""
        threshold: float = self.values["threshold"]
        names = self.choose_names(step, [_COLLECTION], None) or self.choose_names(step, [], [_NAMES])
        readable = [
            (name, worker)
            for name in names
            for worker, saved in sorted(self.saved(name, step).items())
            if saved.location is not None or _ABS_MEAN in saved.reductions
        ]
        if names and not readable:
            raise TensorUnavailableForStep(names[0], step, has_reductions=True, detail="its absolute mean is not known")
        self._prefetch(readable, step)
        for name, worker in readable:
            tensor = self.base_trial.tensor(name)
            abs_mean = float(np.squeeze(tensor.reduction_value(step, "mean", worker=worker, abs=True)))
            self.inspected += 1
            if has_vanished(abs_mean, threshold):
                text = f"the mean of its absolute values is {abs_mean:.6g}, below threshold {threshold:g}"
                return self.find(name, step, abs_mean, threshold, text, worker)
        return False

    def _prefetch(self, readable: list[tuple[str, str]], step: int) -> None:
        saved = [self.saved(name, step)[worker] for name, worker in readable]
        locations = [entry.reductions.get(_ABS_MEAN, entry.location) for entry in saved]
        self.base_trial.prefetch(location for location in locations if location is not None)
