"""Reading of a run by the real smdebug 1.0.34.

Its interpreter runs this (`serve_calls.py`).
"""

import hashlib
import os
from typing import Any

os.environ.update(SMDEBUG_TRAINING_END_DELAY_REFRESH="0", SMDEBUG_LOG_LEVEL="off")

import numpy as np

from smdebug import modes
from smdebug.exceptions import SMDebugError
from smdebug.trials import create_trial


def describe(value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    described: dict[str, Any] = {
        "dtype": "str" if array.dtype.kind == "U" else array.dtype.str,
        "shape": list(array.shape),
    }
    if array.dtype.kind == "U":
        described["values"] = array.tolist()
    else:
        described["sha256"] = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        # Numbers beside the hash, to see how far apart two arrays are.
        described["values"] = [str(value) for value in array.reshape(-1)[:8].tolist()]
    return described


def read_at(tensor: Any, step: int, worker: str) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    try:
        answers["value"] = describe(tensor.value(step, worker=worker))
    except SMDebugError as error:
        answers["value"] = type(error).__name__
    try:
        answers["shape"] = list(tensor.shape(step, worker=worker))
    except SMDebugError as error:
        answers["shape"] = type(error).__name__
    answers["reductions"] = {
        f"{'abs_' if of_absolute else ''}{name}": describe(value)
        for (name, of_absolute), value in tensor.reduction_values(step, worker=worker).items()
    }
    return answers


def read(folder: str) -> dict[str, Any]:
    trial: Any = create_trial(folder)
    tensors = {}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        tensors[name] = {
            str(step): {worker: read_at(tensor, step, worker) for worker in sorted(tensor.workers(step))}
            for step in tensor.steps()
        }
    return {
        "steps": {mode.name: trial.steps(mode) for mode in modes},
        "modes": sorted(mode.name for mode in trial.modes()),
        "places": {str(step): [trial.mode(step).name, trial.mode_step(step)] for step in trial.steps()},
        "workers": trial.workers(),
        "loaded_all_steps": trial.loaded_all_steps,
        "collections": {name: trial.tensor_names(collection=name) for name in sorted(trial.collections())},
        "tensors": tensors,
    }
