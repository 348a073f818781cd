"""SaturatedActivation: inputs in the flat range of tanh or sigmoid."""

from typing import ClassVar

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.measuring.activations import (
    SIGMOID,
    TANH,
    TANH_OR_SIGMOID,
    ActivationFinder,
    build_names_regex,
    compute_inactive_percent,
    tell_by_name,
)
from smdebug.rules.parameters import number, regex, texts
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor

_KINDS = (TANH, SIGMOID)


class SaturatedActivation(BuiltInRule):
    """Fires where more than threshold_layer percent of the nodes in a tanh or sigmoid layer are saturated.

    A node is one position of the input behind its first axis, which is that of the samples. It is saturated at a step
    if its input is within the [min, max] of its function in less than threshold_inactivity percent of the step's
    samples: saturated = 100 * |{node: 100 * samples inside / samples < threshold_inactivity}| / nodes, in percent. Each
    worker is judged separately. If only reductions of an input were saved, a min and a max that are both inside show
    that no node is saturated.

    The function is recognised from the module's saved input and output, or from the tensor's name. If it is not known,
    [min, max] is the range that covers those of both functions. With the default parameters, the rule also inspects
    tensors with the names that Keras, MXNet and PyTorch give to such inputs.

    Source: AWS's documentation of the rule SaturatedActivation (collection_names None, tensor_regex
    .*tanh_input|.*sigmoid_input, threshold_tanh_min -9.4999, threshold_tanh_max 9.4999, threshold_sigmoid_min -23,
    threshold_sigmoid_max 16.99999, threshold_inactivity 1.0 %, threshold_layer 50.0 %). The definition of a node is
    this project's.
    """

    parameters = (
        texts("collection_names"),
        regex("tensor_regex", ".*tanh_input|.*sigmoid_input"),
        number("threshold_tanh_min", -9.4999),
        number("threshold_tanh_max", 9.4999),
        number("threshold_sigmoid_min", -23.0),
        number("threshold_sigmoid_max", 16.99999),
        number("threshold_inactivity", 1.0, minimum=0.0, maximum=100.0),
        number("threshold_layer", 50.0, minimum=0.0, maximum=100.0),
    )
    inspects = "inputs of tanh and sigmoid (tensor_regex or collection_names)"
    needs = "neither its values nor a min and max that show whether nodes are saturated were saved"
    collections: ClassVar = {
        "activation_input": {"include_regex": "tanh.*_input|sigmoid.*_input", "save_interval": "500"}
    }
    example: ClassVar = {"collection_names": "activation_input"}
    configure = (
        "Save the inputs of the activation modules. In PyTorch an input is named after its module (`act1_input_0`): "
        "give these names in the include_regex of a collection, and the collection in collection_names. Or save inputs "
        "and outputs (save_all), from which the rule recognises the modules."
    )
    advice = (
        "Standardize the inputs, and initialize with Xavier: large inputs make tanh and sigmoid flat.",
        "Lower the learning rate, or add a BatchNorm before the activation.",
        "Use ReLU in hidden layers. Raise threshold_layer for a gate or an output that should saturate.",
    )

    def _prepare(self) -> None:
        self._ranges = {
            kind: (self.values[f"threshold_{kind}_min"], self.values[f"threshold_{kind}_max"]) for kind in _KINDS
        }
        for kind, (lowest, highest) in self._ranges.items():
            if lowest > highest:
                raise self.refuse(f"threshold_{kind}_min {lowest:g} is above threshold_{kind}_max {highest:g}.")
        self._finder = ActivationFinder(self.tensors.read_first)
        self._limits = [Limit("saturated nodes of a layer (%)", self.values["threshold_layer"])]

    def invoke_at_step(self, step: int) -> bool:
        """Whether a layer is saturated at this global step; TensorUnavailableForStep if no layer can be judged."""
        collections = self.values["collection_names"] or ()
        is_default = self.is_default("tensor_regex")
        # A collection that is named alone is all that is looked at.
        patterns = [] if collections and is_default else self.values["tensor_regex"]
        names = set(self.tensors.choose(step, collections, patterns))
        found = self._finder.find(self.tensors.names(step), step)
        recognised = {given: kind for (given, _), kind in found.items() if kind in (*_KINDS, TANH_OR_SIGMOID)}
        if is_default and not collections:
            names.update(self.tensors.choose(step, (), [build_names_regex(_KINDS, "input")]), recognised)
        places = self.tensors.saved(sorted(names), step)
        return self.inspect(places, lambda place: self._judge(place, recognised.get(place.name)))

    def _judge(self, place: WorkerTensor, recognised: str | None) -> bool | None:
        kind = recognised or tell_by_name(place.name)
        ranges = [self._ranges[kind]] if kind in self._ranges else list(self._ranges.values())
        lowest, highest = min(each[0] for each in ranges), max(each[1] for each in ranges)
        inputs = self.tensors.read(place)
        if inputs is None:
            smallest, largest = self.tensors.read_reduction(place, "min"), self.tensors.read_reduction(place, "max")
            is_inside = smallest is not None and largest is not None and lowest <= smallest and largest <= highest
            return False if is_inside else None
        inactivity: float = self.values["threshold_inactivity"]
        saturated = compute_inactive_percent((inputs >= lowest) & (inputs <= highest), inactivity)
        return self.weigh(
            place,
            saturated,
            self._limits,
            lambda limit: (
                f"{saturated:.4g} % of its nodes have an input from {lowest:g} to {highest:g} in less than "
                f"{inactivity:g} % of the samples, above threshold_layer {limit.threshold:g} %"
            ),
        )
