"""Names of Gluon blocks, and lists of a block's children."""

from typing import Any

from mxnet import gluon, sym


def get_block_name(block: gluon.Block) -> str:
    """Return the name of a block in Gluon, or its lower-case class name if the block has an empty prefix."""
    return str(block.name or type(block).__name__.lower())


def list_blocks(root: gluon.Block) -> list[gluon.Block]:
    """Return a block and all blocks inside it, without duplicates."""
    found: list[gluon.Block] = []
    root.apply(found.append)
    return list(dict.fromkeys(found))


def is_tracing(inputs: Any) -> bool:
    """Return whether a block is called with symbols, because a hybridized block that contains it is being compiled."""
    return any(isinstance(value, sym.Symbol) for value in inputs)
