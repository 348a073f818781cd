"""Names of a Keras model's variables and layers in a run."""

import re
from collections.abc import Iterator
from typing import Any

from smdebug.config.collection_manager import BIASES_REGEX

_BIAS = re.compile(BIASES_REGEX)


class ModelNames:
    """Names of a model's variables, gradients and layers; they are valid until the model changes.

    The name of a variable is `<layer>/weights/<path>:0`. `<layer>` is the layer that holds the variable, in the model
    or in a model inside it, and `<path>` is the variable's name in Keras. The name of its gradient is
    `gradients/<path>Grad`. A layer has its name in Keras, or its path if several layers of the model have the same
    name. Names that are still not unique get a number.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        # Whether these names were added to the collections of a hook.
        self.is_listed = False
        # Whether a step changed the model, so that the names were updated only after the step.
        self.is_late = False
        self._read()

    def _read(self) -> None:
        model = self.model
        self.weights: dict[str, Any] = {}
        self.gradients: dict[int, str] = {}
        self.layers: dict[int, str] = {}
        self._paths: dict[int, str] = {}
        self._signature = _get_signature(model)
        self._name_layers()
        taken: set[str] = set()
        for owner, variable in _walk_variables(model):
            path = self._paths[id(variable)] = _make_unique(get_path(variable), taken)
            taken.add(path)
            self.weights[f"{self.layers.get(id(owner), owner.name)}/weights/{path}:0"] = variable
            if variable.trainable:
                self.gradients[id(variable)] = get_gradient_name(path)

    @property
    def is_outdated(self) -> bool:
        """Whether layers or variables of the model were added, replaced or frozen since the names were read."""
        return self._signature != _get_signature(self.model)

    @property
    def is_built(self) -> bool:
        """Whether all layers have created their variables and inner layers; some do so only with their first batch."""
        return self.model.built and all(layer.built for layer in _flatten(self.model))

    def refresh(self) -> bool:
        """Read the names again if the model has changed, as after its first batch; return whether it has."""
        if not self.is_outdated:
            return False
        self.is_listed = False
        self._read()
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the model has no variables yet."""
        return not self.weights

    def get_weight_names(self) -> list[str]:
        """Return the names of all variables except biases."""
        return [name for name in self.weights if not is_bias(name)]

    def _name_layers(self) -> None:
        layers = _flatten(self.model)
        names = [layer.name for layer in layers]
        taken: set[str] = set()
        for layer, name in zip(layers, names, strict=True):
            if id(layer) in self.layers:
                continue
            wanted = name if names.count(name) == 1 else (getattr(layer, "path", None) or name).replace("/", ".")
            self.layers[id(layer)] = unique = _make_unique(wanted, taken)
            taken.add(unique)


def is_bias(name: str) -> bool:
    """Return whether a name matches the regex of the collection biases."""
    return bool(_BIAS.search(name))


def get_path(variable: Any) -> str:
    """Return the name of a variable in Keras or TensorFlow, without the index of an output."""
    path = variable.path if hasattr(variable, "path") else variable.name
    return str(path).partition(":")[0]


def get_gradient_name(path: str) -> str:
    """Return the name of a variable's gradient."""
    return f"gradients/{path}Grad"


def get_optimizer_variables(optimizer: Any) -> dict[str, Any]:
    """Return an optimizer's variables by their names; empty if they do not exist yet."""
    variables = getattr(optimizer, "variables", None)
    if callable(variables):
        variables = variables()
    found: dict[str, Any] = {}
    # After the first update, Keras' legacy optimizers also have variables for their hyperparameters.
    hyper = getattr(optimizer, "_hyper", {})
    settings = [hyper[name] for name in sorted(hyper) if hasattr(hyper[name], "assign")]
    for variable in (*(variables or ()), *settings):
        found[_make_unique(f"{get_path(variable)}:0", found)] = variable
    return found


def _make_unique(name: str, taken: Any) -> str:
    unique, number = name, 0
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _flatten(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False, recursive=True))  # noqa: SLF001 - no public way down into layers of layers


def _get_signature(model: Any) -> tuple[Any, ...]:
    layers = _flatten(model)
    if hasattr(model, "_trainable_weights"):
        # Keras 2: the layer's own lists are cheap to read, while `weights` builds a new list on each access.
        own = (tuple(map(id, (*layer._trainable_weights, *layer._non_trainable_weights))) for layer in (model, *layers))  # noqa: SLF001 - no public way
        return (*map(id, layers), *own)
    variables = ((id(variable), variable.trainable) for variable in _get_weights(model))
    return (*map(id, layers), *variables)


def _get_weights(layer: Any) -> list[Any]:
    try:
        return list(layer.weights)
    except ValueError:
        # Before the first batch creates the weights, Keras 2 raises an error instead of returning an empty list.
        return []


def _walk_variables(model: Any) -> Iterator[tuple[Any, Any]]:
    seen: set[int] = set()
    for owner in (*_walk_owners(model), model):
        for variable in _get_weights(owner):
            if id(variable) not in seen:
                seen.add(id(variable))
                yield owner, variable


def _walk_owners(model: Any) -> Iterator[Any]:
    for layer in model._flatten_layers(include_self=False, recursive=False):  # noqa: SLF001 - as above
        if hasattr(layer, "train_step"):
            yield from _walk_owners(layer)
        yield layer
