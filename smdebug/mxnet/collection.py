"""Collections of Gluon blocks' tensors."""

from collections.abc import Mapping
from typing import ClassVar

from mxnet import gluon

from smdebug.capture.part_capture import INPUT_SUFFIX, OUTPUT_SUFFIX
from smdebug.config.collection import Collection as BaseCollection
from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import PARAMETER_COLLECTIONS, FrameworkCollectionManager
from smdebug.mxnet.blocks import get_block_name

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]


class Collection(BaseCollection):
    """A collection that accepts a block to include the block's tensors."""

    def add_block_tensors(self, block: gluon.Block, inputs: bool = False, outputs: bool = True) -> None:
        """Include the inputs of a block, its outputs, or both; the block must be part of a registered block."""
        name = get_block_name(block)
        if inputs:
            self.include(f"{name}{INPUT_SUFFIX}")
        if outputs:
            self.include(f"{name}{OUTPUT_SUFFIX}")


class CollectionManager(FrameworkCollectionManager):
    """Collections of an MXNet run."""

    collection_class = Collection
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **PARAMETER_COLLECTIONS,
        CollectionKeys.LOSSES: (".*loss._(?!input).*output",),
    }
