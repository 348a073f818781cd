"""DeadRelu: ReLU units that almost never let anything through."""

from typing import ClassVar

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.measuring.activations import RELU, ActivationFinder, build_names_regex, compute_inactive_percent
from smdebug.rules.parameters import number, regex
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

_COLLECTION = "relu_output"


class DeadRelu(BuiltInRule):
    """Fires where more than threshold_layer percent of the units in a layer of ReLUs are dead, on any worker.

    A unit is one position of the output behind its first axis, which is that of the samples. It is active in a sample
    if its output is above 0, and dead at a step if it is active in less than threshold_inactivity percent of the step's
    samples: dead = 100 * |{unit: 100 * active samples / samples < threshold_inactivity}| / units, in percent. If only
    reductions of an output were saved, a max of 0 shows that all units are dead, and a min above 0 that none is.

    With the default regex, the rule also inspects the collection relu_output, outputs with the names that Keras, MXNet
    and PyTorch give to those of a ReLU, and outputs of modules for which saved output = max(saved input, 0).

    Source: AWS's documentation of the rule DeadRelu (tensor_regex .*relu_output, threshold_inactivity 1.0 %,
    threshold_layer 50.0 %). The definition of a unit is this project's.
    """

    parameters = (
        regex("tensor_regex", ".*relu_output"),
        number("threshold_inactivity", 1.0, minimum=0.0, maximum=100.0),
        number("threshold_layer", 50.0, minimum=0.0, maximum=100.0),
    )
    inspects = "outputs of ReLUs (tensor_regex, or collection relu_output)"
    needs = "neither its values nor a max or min that shows whether units are dead was saved"
    collections: ClassVar = {_COLLECTION: {"include_regex": "relu.*_output", "save_interval": "500"}}
    example: ClassVar = {"threshold_layer": "60"}
    configure = (
        "Save the outputs of the ReLUs into the collection relu_output. In PyTorch an output is named after its module "
        "(`relu1_output_0`, `features.2_output_0`), so give the modules' names in the collection's include_regex, or "
        "fill it with add_module_tensors. A job with save_all needs neither, because the rule then recognises a ReLU "
        "by its input and output. torch.nn.functional.relu is not a module: its output is not saved."
    )
    advice = (
        "Lower the learning rate, or warm it up: a single step that is too large can make biases negative for good.",
        "Use LeakyReLU or GELU in this layer, He initialization, or BatchNorm before the ReLU.",
        "Raise threshold_layer for a layer that is sparse by design. In a small batch, units may only look dead.",
    )

    def _prepare(self) -> None:
        self._finder = ActivationFinder(self.tensors.read_first)
        self._limits = [Limit("dead units of a layer (%)", self.values["threshold_layer"])]

    def invoke_at_step(self, step: int) -> bool:
        """Whether a layer's ReLUs are dead at this global step; TensorUnavailableForStep if no layer can be judged."""
        patterns: list[str] = self.values["tensor_regex"]
        names = set(self.tensors.choose(step, (), patterns))
        if self.is_default("tensor_regex"):
            names.update(self.tensors.choose(step, (_COLLECTION,), [build_names_regex([RELU], "output")]))
            found = self._finder.find(self.tensors.names(step), step)
            names.update(output for (_, output), kind in found.items() if kind == RELU)
        return self.inspect(self.tensors.saved(sorted(names), step), self._judge)

    def _judge(self, place: WorkerTensor) -> bool | None:
        inactivity: float = self.values["threshold_inactivity"]
        outputs = self.tensors.read(place)
        dead = self._dead_by_reductions(place) if outputs is None else compute_inactive_percent(outputs > 0, inactivity)
        if dead is None:
            return None
        return self.weigh(
            place,
            dead,
            self._limits,
            lambda limit: (
                f"{dead:.4g} % of its units are active in less than {inactivity:g} % of the samples, above "
                f"threshold_layer {limit.threshold:g} %"
            ),
        )

    def _dead_by_reductions(self, place: WorkerTensor) -> float | None:
        highest = self.tensors.read_reduction(place, "max")
        highest = self.tensors.read_reduction(place, "max", of_absolute=True) if highest is None else highest
        if highest is not None and highest <= 0:
            return 100.0 if self.values["threshold_inactivity"] > 0 else 0.0
        lowest = self.tensors.read_reduction(place, "min")
        return 0.0 if lowest is not None and lowest > 0 else None
