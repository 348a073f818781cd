"""Block-by-block execution of hybridized blocks, for steps that save them.

A hybridized block is one compiled operator. The blocks inside it are called once, for compilation, and never again. In
a step that saves tensors of inner blocks, the same computation runs block by block. The next step runs compiled again.
"""

from collections.abc import Callable
from typing import Any

from mxnet import gluon

from smdebug.mxnet.blocks import is_tracing, list_blocks


class EagerForward:
    """Disables compilation of a block for one call, and enables it again when the call returns."""

    def __init__(self, report: Callable[[str, Exception], None]) -> None:
        """Initialize with a function that reports a failure."""
        self._report = report
        self._suspended: list[gluon.HybridBlock] = []
        self._handles: list[Any] = []

    def begin(self, root: gluon.Block, inputs: Any) -> None:
        """Make the call that begins now, with these inputs, run block by block."""
        # `hybridize(False)` would discard the compiled code and the script's settings.
        active = [block for block in list_blocks(root) if _is_compiled(block)]
        if not active:
            return
        for block in _find_outermost(root):
            if block is root:
                self._compile(block, inputs)
            else:
                self._handles.append(block.register_forward_pre_hook(self._compile))
        for block in active:
            block._active = False  # noqa: SLF001
        self._suspended = active
        self._handles.append(root.register_forward_hook(self._after_call))

    def end(self) -> None:
        """Enable compilation again, if a failed call has not done so."""
        self._resume()
        for handle in self._handles:
            handle.detach()
        self._handles.clear()

    def _compile(self, block: gluon.HybridBlock, inputs: Any) -> None:
        """Compile a block that its first call would have compiled if this step were not saved.

        `export` requires a compiled block. The compilation also initializes all parameters of unknown shape before
        anything is computed. In a call block by block, other random numbers would be drawn in between.
        """
        if block._cached_op is not None or is_tracing(inputs):  # noqa: SLF001
            return
        try:
            block._build_cache(*inputs)  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self._report("the compiled form of a hybridized block, which its next call makes", error)

    def _after_call(self, root: gluon.Block, inputs: Any, outputs: Any) -> None:  # noqa: ARG002 - Gluon's signature
        self._resume()

    def _resume(self) -> None:
        for block in self._suspended:
            block._active = True  # noqa: SLF001
        self._suspended = []


def _is_compiled(block: gluon.Block) -> bool:
    return isinstance(block, gluon.HybridBlock) and not isinstance(block, gluon.SymbolBlock) and block._active  # noqa: SLF001


def _find_outermost(root: gluon.Block) -> list[gluon.HybridBlock]:
    """Return the compiled blocks that are not inside another compiled block; each of them is one operator."""
    if _is_compiled(root):
        return [root]
    children = root._children.values()  # noqa: SLF001 - there is no public way to them
    return list(dict.fromkeys(block for child in children for block in _find_outermost(child)))
