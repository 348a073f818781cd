"""Context of a module call: training, building, tracing or recomputation."""

import sys
from types import FrameType

import torch
from torch import nn

_get_graph_task_id = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001 - torch's checkpoints ask it
_get_tracing_state = torch._C._get_tracing_state  # noqa: SLF001 - what torch.jit.is_tracing() asks
_is_compiling = torch.compiler.is_compiling


def is_training_call() -> bool:
    """Return whether the script itself calls a module.

    A compiler or `torch.jit.trace` calls a module to analyze it, a checkpoint calls it again within the backward pass,
    and a capture records a CUDA graph of it. None of these calls is a step, and none produces new values.
    """
    return (
        not _is_compiling() and _get_graph_task_id() == -1 and _get_tracing_state() is None and not is_being_captured()
    )


def is_being_captured() -> bool:
    """Return whether this thread's CUDA stream records a graph. Nothing is computed then, and waiting is an error."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def get_backward_pass() -> int:
    """Return the number of the backward pass that is running in this thread; -1 if there is none."""
    return _get_graph_task_id()


def is_in_backward() -> bool:
    """Return whether a backward pass is running in this thread."""
    return _get_graph_task_id() != -1


def is_being_built() -> bool:
    """Return whether a module's constructor or a parametrization is calling, for example to see a part's result.

    This walks the stack frames, which takes microseconds, so use it for a module's first call only.
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
