"""What went into a step: its inputs, labels and predictions, in the order in which the framework numbers them."""

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from smdebug.analysis.utils import _tensor_name_sorter
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun


def read_step_data(trial: OpenRun, names: Iterable[str], step: int, mode: ModeKeys) -> list[NDArray[Any]]:
    """Return the values of those of the tensors that a step has, ordered by the number that a name ends in.

    Args:
        trial: the run.
        names: tensors.
        step: step, in the mode's numbers.
        mode: what the step counts.

    Raises:
        TensorUnavailableForStep: only reductions of one were saved, or its file is missing or damaged.
    """
    global_step = trial.global_step(mode, step)
    if global_step is None:
        return []
    tensors = [trial.tensor(name) for name in sorted(names, key=_tensor_name_sorter)]
    return [tensor.value(global_step) for tensor in tensors if tensor.has_step(global_step)]
