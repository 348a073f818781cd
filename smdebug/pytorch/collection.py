"""Collections of PyTorch modules' tensors."""

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn

from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import PARAMETER_COLLECTIONS, FrameworkCollectionManager

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that can include the tensors of a given module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Initialize with the arguments of the base class."""
        super().__init__(*args, **kwargs)
        self._modules: dict[nn.Module, tuple[bool, bool]] = {}

    def add_module_tensors(self, module: nn.Module, inputs: bool = False, outputs: bool = True) -> None:
        """Include a module's inputs, its outputs, or both; its model must be registered by the first step."""
        self._modules[module] = inputs, outputs

    @property
    def modules(self) -> dict[nn.Module, tuple[bool, bool]]:
        """Whether the inputs and the outputs of each added module are included."""
        return self._modules


class CollectionManager(FrameworkCollectionManager):
    """Collections of a PyTorch run."""

    collection_class = Collection
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **PARAMETER_COLLECTIONS,
        CollectionKeys.LOSSES: ("[Ll]oss_(?!input).*output",),
    }
