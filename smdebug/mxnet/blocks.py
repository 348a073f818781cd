"""Names of Gluon blocks, and lists of a block's children."""

from typing import Any

from mxnet import gluon, sym


def get_block_name(block: gluon.Block) -> str:
    """Return the name that Gluon gave a block; of one made with an empty prefix, that of its class."""
    return str(block.name or type(block).__name__.lower())


def list_blocks(root: gluon.Block) -> list[gluon.Block]:
    """Return a block and all that are in it, each once."""
    found: list[gluon.Block] = []
    root.apply(found.append)
    return list(dict.fromkeys(found))


def is_tracing(inputs: Any) -> bool:
    """Return whether a block is called with symbols, to be compiled as a part of a hybridized one."""
    return any(isinstance(value, sym.Symbol) for value in inputs)
