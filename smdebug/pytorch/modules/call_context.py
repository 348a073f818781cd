"""Context of a module call: training, building, tracing or recomputation."""

import sys
from types import FrameType

import torch
from torch import nn

_get_graph_task_id = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001 - torch's checkpoints ask it
_get_tracing_state = torch._C._get_tracing_state  # noqa: SLF001 - what torch.jit.is_tracing() asks
_is_compiling = torch.compiler.is_compiling


def is_training_call() -> bool:
    """Tell whether a call of a module is one of the script's own.

    A compiler or `torch.jit.trace` calls a module to see what it does, and a checkpoint calls it again within the
    backward pass: neither is a step, and what comes out is nothing new.
    """
    return not _is_compiling() and _get_graph_task_id() == -1 and _get_tracing_state() is None


def get_backward_pass() -> int:
    """Return the number of the backward pass that calls, -1 where none does."""
    return _get_graph_task_id()


def is_in_backward() -> bool:
    """Tell whether a backward pass is calling."""
    return _get_graph_task_id() != -1


def is_being_built() -> bool:
    """Tell whether the constructor of a module calls, to see what a part returns, or what gives a parameter its form.

    Frames are walked, which takes microseconds: for a module's first call, not for every one.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to see who calls
    while frame is not None:
        code = frame.f_code
        if frame.f_globals.get("__name__") == "torch.nn.utils.parametrize":
            return True
        if code.co_name == "__init__" and any(
            isinstance(frame.f_locals.get(name), nn.Module) for name in code.co_varnames[:1]
        ):
            return True
        frame = frame.f_back
    return False
