"""How a module is being called: to train, or by something that only looks at it, or a second time for its gradients."""

from __future__ import annotations

import torch

_get_graph_task_id = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001 - torch's checkpoints ask it
_get_tracing_state = torch._C._get_tracing_state  # noqa: SLF001 - what torch.jit.is_tracing() asks
_is_compiling = torch.compiler.is_compiling


def is_training_call() -> bool:
    """Tell whether a call of a module is one of the script's own.

    A compiler or `torch.jit.trace` calls a module to see what it does, and a checkpoint calls it again within the
    backward pass: neither is a step, and what comes out is nothing new.
    """
    return not _is_compiling() and _get_graph_task_id() == -1 and _get_tracing_state() is None
