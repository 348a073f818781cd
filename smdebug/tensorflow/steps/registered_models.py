"""Models registered by custom training loops, for capture of their layers."""

from collections.abc import Iterator
from typing import Any

from smdebug.tensorflow.steps.model_names import ModelNames


class RegisteredModels:
    """Combines the names of several models; the inputs and predictions of the first model are those of the step."""

    def __init__(self) -> None:
        self._models: list[Any] = []
        self._names: list[ModelNames] = []

    def add(self, model: Any) -> None:
        """Add a model, unless it was added before."""
        if not any(known is model for known in self._models):
            self._models.append(model)

    def refresh(self) -> bool:
        """Read the names again if models were added or have changed; return whether this is the case."""
        if len(self._names) == len(self._models) and not any(names.is_outdated for names in self._names):
            return False
        self._names = [ModelNames(model) for model in self._models]
        return True

    @property
    def model(self) -> Any:
        """The model whose call is the step's forward pass; None without models."""
        return self._models[0] if self._models else None

    @property
    def is_built(self) -> bool:
        """Whether all layers of all models have created their variables."""
        return all(names.is_built for names in self._names)

    @property
    def layers(self) -> dict[int, str]:
        """Names of layers by their ids."""
        return {key: name for names in self._names for key, name in names.layers.items()}

    @property
    def gradients(self) -> dict[int, str]:
        """Always empty: the gradients come from a tape, not from the optimizer."""
        return {}

    @property
    def variables(self) -> Iterator[Any]:
        """All variables, including those that are not trained."""
        return (variable for names in self._names for variable in names.weights.values())
