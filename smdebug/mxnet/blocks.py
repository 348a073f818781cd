"""What a Gluon block is called, and which blocks and arrays there are in it."""

from collections.abc import Iterator
from typing import Any

from mxnet import gluon, nd, sym

INPUT_SUFFIX = "_input_"
OUTPUT_SUFFIX = "_output_"


def get_block_name(block: gluon.Block) -> str:
    """Return the name that Gluon gave a block; of one made with an empty prefix, that of its class."""
    return str(block.name or type(block).__name__.lower())


def list_blocks(root: gluon.Block) -> list[gluon.Block]:
    """Return a block and all that are in it, each once."""
    found: list[gluon.Block] = []
    root.apply(found.append)
    return list(dict.fromkeys(found))


def iterate_arrays(values: object) -> Iterator[nd.NDArray]:
    """Yield the arrays in a value, lists and tuples walked; the symbols of a block that is being traced are none."""
    if isinstance(values, nd.NDArray):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from iterate_arrays(value)


def is_tracing(inputs: Any) -> bool:
    """Tell whether a block is called with symbols, to be compiled as a part of a hybridized one."""
    return any(isinstance(value, sym.Symbol) for value in inputs)
