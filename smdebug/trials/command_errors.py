"""Error messages of `python -m smdebug.trials`, in terms of its options."""

from smdebug.analysis.plots import ReductionRequired
from smdebug.exceptions import TensorUnavailable, TensorUnavailableForStep


def describe_error(error: Exception, lister: str) -> str:
    """Return what went wrong and what to type instead, on one line.

    Args:
        error: what smdebug, the file system or matplotlib raised.
        lister: the command that lists the tensors.
    """
    match error:
        case TensorUnavailable():
            text = f"There is no tensor {error.tname}. To list the tensors: {lister}"
        case ReductionRequired():
            text = f"Tensor {error.tname} has {error.size} numbers a step: use a reduction, such as --reduction mean."
        case TensorUnavailableForStep():
            why = error.detail or "it was not saved there"
            text = f"Tensor {error.tname} has no value at step {error.step} of mode {error.mode.name}: {why}."
            text += (
                " Only reductions of it were saved: plot one of them, such as --reduction mean." * error.has_reductions
            )
        case OSError(filename=str(name)):
            text = f"{name} cannot be written or read: {error.strerror}."
        case _:
            text = str(error)
    return " ".join(text.split())
