"""VanishingGradient: gradients have become too small for the weights to move."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from smdebug.rules.built_in_rule import INEXACT, BuiltInRule
from smdebug.rules.moments import compute_abs_mean
from smdebug.rules.parameters import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smdebug.rules.step_values import Place

_COLLECTION = "gradients"
_QUANTITY = "smallest mean of a gradient's absolute values"
# For runs whose collections file does not list them: PyTorch's and MXNet's gradient/, TensorFlow's gradients/.
_NAMES = "^gradients?/"


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
    needs: ClassVar[str] = "its absolute mean is not known: neither its values nor the reduction abs_mean was saved"
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = {_COLLECTION: {"save_interval": "500"}}
    example: ClassVar[Mapping[str, str]] = {"threshold": "0.000001"}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a gradient has vanished at this global step; TensorUnavailableForStep if none can be judged."""
        names = self.choose_names(step, [_COLLECTION], None) or self.choose_names(step, [], [_NAMES])
        selection = self.select(names, step, (("mean", True),))
        if selection is not None:
            means, threshold = selection.measure("abs_mean"), self.values["threshold"]
            self.watch_nearest(_QUANTITY, step, selection, means, threshold, "below")
            return self.inspect_doubtful(selection, step, means < threshold * (1 + INEXACT), self._judge)
        places = self.places(names, step)
        self.prefetch(places, (("mean", True),))
        return self.inspect(places, self._judge)

    def _judge(self, place: Place) -> bool | None:
        abs_mean = self.read_reduction(place, "mean", of_absolute=True)
        gradient = self.read(place) if abs_mean is None else None
        if gradient is not None and gradient.size:
            abs_mean = compute_abs_mean(gradient)
        threshold: float = self.values["threshold"]
        if abs_mean is None:
            return None
        self.watch_at(_QUANTITY, place, abs_mean, threshold, "below")
        if not has_vanished(abs_mean, threshold):
            return False
        text = f"the mean of its absolute values is {abs_mean:.6g}, below threshold {threshold:g}"
        return self.find_at(place, abs_mean, threshold, text)
