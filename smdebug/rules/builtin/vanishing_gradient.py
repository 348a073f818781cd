"""VanishingGradient: gradients too small to change the weights."""

from typing import ClassVar

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.measuring.moments import compute_abs_mean
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

_COLLECTION = "gradients"
# For runs whose collections file does not list them: PyTorch's and MXNet's gradient/, TensorFlow's gradients/.
_NAMES = "^gradients?/"


class VanishingGradient(BuiltInRule):
    """Fires at a step where the mean of a gradient's absolute values is below threshold, on any worker.

    mean(|g|) is the saved reduction abs_mean if there is one, else it is computed from all elements of the saved
    gradient. It has the gradient's unit (loss per unit of weight). Gradients are the tensors of the collection
    `gradients`; if it lists none, those named gradient/... or gradients/...

    Source: AWS's documentation of the rule VanishingGradient (threshold, default 0.0000001).
    """

    parameters = (number("threshold", 1e-7, minimum=0.0),)
    inspects = "gradients (collection gradients), saved as values or as their abs_mean"
    needs = "its absolute mean is not known: neither its values nor the reduction abs_mean was saved"
    collections: ClassVar = {_COLLECTION: {"save_interval": "500"}}
    example: ClassVar = {"threshold": "0.000001"}
    advice = (
        "Use ReLU in place of sigmoid and tanh, add residual connections, and initialize by the layer's width.",
        "Put a BatchNorm or LayerNorm between layers, or make the network shallower.",
        "Gradients of biases before a BatchNorm are 0 by design: train those layers without bias.",
    )

    def _prepare(self) -> None:
        self._limits = [Limit("smallest mean of a gradient's absolute values", self.values["threshold"], "below")]

    def invoke_at_step(self, step: int) -> bool:
        """Whether a gradient has vanished at this global step; TensorUnavailableForStep if none can be judged."""
        names = self.tensors.choose(step, [_COLLECTION]) or self.tensors.choose(step, [], [_NAMES])
        return self.inspect_measured(
            names, step, self._limits, lambda rows: measure(rows, "abs_mean"), self._judge, (("mean", True),)
        )

    def _judge(self, place: WorkerTensor) -> bool | None:
        abs_mean = self.tensors.read_reduction(place, "mean", of_absolute=True)
        gradient = self.tensors.read(place) if abs_mean is None else None
        if gradient is not None and gradient.size:
            abs_mean = compute_abs_mean(gradient)
        if abs_mean is None:
            return None
        return self.weigh(
            place,
            abs_mean,
            self._limits,
            lambda limit: f"the mean of its absolute values is {abs_mean:.6g}, below threshold {limit.threshold:g}",
        )
