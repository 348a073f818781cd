"""Collections of Keras layers and TensorFlow tensors."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import PARAMETER_COLLECTIONS, FrameworkCollectionManager

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that accepts tensors, variables and layers as well as names."""

    def add(self, tensors: Any) -> None:
        """Include a tensor or variable of a graph by its name, or each item of a list, tuple or set.

        Raises:
            SMDebugTypeError: the argument has another type.
        """
        if isinstance(tensors, (list, tuple, set)):
            for tensor in tensors:
                self.add(tensor)
            return
        self.add_tensor_name(tensors if isinstance(tensors, str) else get_name(tensors))

    def add_for_mode(self, tensors: Any, mode: object = None) -> None:  # noqa: ARG002 - smdebug's signature
        """Include tensors like `add`; the mode is ignored, because it is known when a tensor is saved."""
        self.add(tensors)

    def add_keras_layer(self, layer: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Include the inputs of a Keras layer, its outputs, or both."""
        if inputs:
            self.include(rf"^{re.escape(layer.name)}/inputs(_\d+)?$")
        if outputs:
            self.include(rf"^{re.escape(layer.name)}/outputs(_\d+)?$")


def get_name(tensor: Any) -> str:
    """Return the name under which a run stores a tensor or variable of a graph."""
    name = tensor.path if hasattr(tensor, "path") else tensor.name
    return name if ":" in name else f"{name}:0"


class CollectionManager(FrameworkCollectionManager):
    """Collections of a TensorFlow run."""

    collection_class = Collection
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **PARAMETER_COLLECTIONS,
        # Listed by their names.
        CollectionKeys.WEIGHTS: (),
        CollectionKeys.LOSSES: (),
        CollectionKeys.METRICS: (),
        CollectionKeys.INPUTS: (r"^inputs(_\d+)?$",),
        CollectionKeys.OUTPUTS: (r"^(labels|predictions)(_\d+)?$",),
        CollectionKeys.LAYERS: (r"^[^/]+/(inputs|outputs)(_\d+)?$",),
        CollectionKeys.SM_METRICS: (),
        CollectionKeys.OPTIMIZER_VARIABLES: (),
    }
