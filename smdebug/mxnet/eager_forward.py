"""Steps that run block by block, so that the blocks inside a hybridized one can be seen.

A hybridized block is one compiled operator: what is inside it is called once, to be compiled, and never again. In a
step that saves tensors of inner blocks the same computation runs block by block instead, and compiled in the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxnet import gluon

from smdebug.mxnet.blocks import list_blocks

if TYPE_CHECKING:
    from collections.abc import Callable


class EagerForward:
    """Takes compilation away from a block for one call, and gives it back when the call has returned."""

    def __init__(self, report: Callable[[str, Exception], None]) -> None:
        """Take what is told of a failure."""
        self._report = report
        self._suspended: list[gluon.HybridBlock] = []
        self._handle: Any = None

    def begin(self, root: gluon.Block) -> None:
        """Run the call that begins now block by block."""
        # `hybridize(False)` would throw away what was compiled, and with it the script's settings.
        active = [
            block
            for block in list_blocks(root)
            if isinstance(block, gluon.HybridBlock) and not isinstance(block, gluon.SymbolBlock) and block._active  # noqa: SLF001
        ]
        if not active:
            return
        for block in active:
            block._active = False  # noqa: SLF001
        self._suspended = active
        self._handle = root.register_forward_hook(self._after_call)

    def end(self) -> None:
        """Give compilation back, if a call that failed has not done so."""
        self._resume()
        if self._handle is not None:
            self._handle.detach()
            self._handle = None

    def _after_call(self, root: gluon.Block, inputs: Any, outputs: Any) -> None:  # noqa: ARG002 - Gluon's signature
        self._resume()
        if getattr(root, "_active", False) and not root._cached_graph:  # noqa: SLF001
            # `export` demands that a hybridized block was compiled by a call; had this step not been saved, it were.
            try:
                root._build_cache(*inputs)  # noqa: SLF001
            except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
                self._report("the compiled form of a hybridized block, which its next call makes", error)

    def _resume(self) -> None:
        for block in self._suspended:
            block._active = True  # noqa: SLF001
        self._suspended = []
