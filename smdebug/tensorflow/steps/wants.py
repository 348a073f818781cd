"""Tensors wanted of a step, computed once for each set of due collections."""

from collections.abc import Callable
from typing import NamedTuple

from smdebug.capture.saving_plan import StepPlan
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.tensorflow.steps.registered_models import RegisteredModels


class Selected:
    """The names that a condition selects, for a model whose names are unknown before its first batch."""

    def __init__(self, is_selected: Callable[[str], bool]) -> None:
        self._is_selected = is_selected

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name != "" and self._is_selected(name)


class Wants(NamedTuple):
    """The tensors that a step returns in addition to its logs; equal wants share a compiled function.

    Attributes:
        gradients: names of wanted gradients.
        layer_inputs: names of the layers whose inputs are wanted.
        layer_outputs: names of the layers whose outputs are wanted.
        batch: the wanted ones of `inputs`, `labels` and `predictions`.
    """

    gradients: frozenset[str] | Selected = frozenset()
    layer_inputs: frozenset[str] | Selected = frozenset()
    layer_outputs: frozenset[str] | Selected = frozenset()
    batch: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether the unchanged step already returns everything that is wanted."""
        return not any(self)


def choose_wants(names: ModelNames | RegisteredModels, plan: StepPlan) -> Wants:
    """Return the tensors that the plan of a step wants of a model or models."""

    def is_gradient_wanted(name: str) -> bool:
        return any(collection.matches(name) for collection in plan.due)

    def is_wanted(name: str) -> bool:
        return is_gradient_wanted(name) or plan.wants_numbered(f"{name}_")

    def is_input_wanted(layer: str) -> bool:
        return is_wanted(f"{layer}/inputs")

    def is_output_wanted(layer: str) -> bool:
        return is_wanted(f"{layer}/outputs")

    batch = frozenset(name for name in ("inputs", "labels", "predictions") if is_wanted(name))
    if names.is_built:
        return Wants(
            frozenset(filter(is_gradient_wanted, names.gradients.values())),
            frozenset(filter(is_input_wanted, names.layers.values())),
            frozenset(filter(is_output_wanted, names.layers.values())),
            batch,
        )
    if any(collection.include_regex for collection in plan.due):
        return Wants(Selected(is_gradient_wanted), Selected(is_input_wanted), Selected(is_output_wanted), batch)
    return Wants(batch=batch)
