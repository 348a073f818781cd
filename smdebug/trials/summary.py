"""Summaries of runs and tensors as plain data, for printing and JSON."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.reading.step_index import Layout
from smdebug.trials.trial import Trial


def describe_run(trial: Trial, mode: ModeKeys = ModeKeys.GLOBAL) -> dict[str, Any]:
    """Return a summary of a run from its index and collections files, without reading tensors.

    Args:
        trial: the run.
        mode: the mode whose tensors are described, in its own step numbers; GLOBAL for those of all modes.

    Returns:
        path, ended, workers, num_workers, bytes (of their records), steps (by mode: count, first, last; GLOBAL has all
        global steps), incomplete_steps (global steps that not all workers have written), collections (number of saved
        tensors by name), tensors (a list of name, steps, first, last, bytes, saved, in the order of the model), and
        damaged (a message for each index file that cannot be read).
    """
    trial.tensor_names()
    steps = {mode.name: _describe_steps(trial.steps(mode, show_incomplete_steps=True)) for mode in _list_modes(trial)}
    complete = set(trial.steps())
    incomplete = [step for step in trial.steps(show_incomplete_steps=True) if step not in complete]
    tensors = list(_describe_tensors(trial, mode))
    return {
        "path": trial.path,
        "ended": trial.loaded_all_steps,
        "workers": trial.workers(),
        "num_workers": trial.num_workers,
        "bytes": sum(tensor["bytes"] for tensor in tensors),
        "steps": steps,
        "incomplete_steps": incomplete,
        "collections": {
            name: len(trial.tensor_names(mode=mode, collection=name))
            for name in sorted(trial.collections())
            if name != "all"
        },
        "tensors": tensors,
        "damaged": [reason for _, reason in sorted(trial.run_index.damage.items())],
    }


def describe_values(trial: Trial, tname: str, mode: ModeKeys = ModeKeys.GLOBAL) -> Iterator[dict[str, Any]]:
    """Yield statistics of a tensor by step and worker: step, worker, dtype, shape, min, max, mean, std, nan, inf.

    nan and inf are counts; the other statistics are those of the finite numbers, None if there are none. If only
    reductions were saved, those that are not complex are in `reductions`; if a file is damaged, `error` has the
    message.

    Raises:
        TensorUnavailable: the tensor does not exist.
    """
    tensor = trial.tensor(tname)
    for step in tensor.steps(mode, show_incomplete_steps=True):
        for worker in tensor.workers(step, mode):
            line: dict[str, Any] = {"step": step, "worker": worker}
            try:
                line.update(_describe_array(tensor.value(step, mode, worker)))
            except TensorUnavailableForStep as error:
                reductions = tensor.reduction_values(step, mode, worker) if error.has_reductions else {}
                if reductions:
                    line["reductions"] = {
                        f"{'abs_' if of_absolute else ''}{name}": float(np.squeeze(value))
                        for (name, of_absolute), value in sorted(reductions.items())
                        if np.asarray(value).dtype.kind != "c"
                    }
                else:
                    line["error"] = str(error)
            except SMDebugError as error:
                line["error"] = str(error)
            yield line


def _list_modes(trial: Trial) -> list[ModeKeys]:
    return [ModeKeys.GLOBAL, *sorted(trial.modes(), key=lambda mode: mode.value)]


def _describe_steps(steps: list[int]) -> dict[str, int | None]:
    return {"count": len(steps), "first": steps[0] if steps else None, "last": steps[-1] if steps else None}


def _describe_tensors(trial: Trial, mode: ModeKeys) -> Iterator[dict[str, Any]]:
    sizes: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {}
    seen: dict[str, list[int]] = {}
    layouts: Counter[Layout] = Counter()
    for step in trial.steps(mode, show_incomplete_steps=True):
        global_step = trial.run_index.global_step(mode, step)
        assert global_step is not None
        for name in trial.run_index.names(global_step):
            span = seen.setdefault(name, [0, step, step])
            span[0] += 1
            span[2] = step
        layouts.update(index.layout for index in trial.run_index.at(global_step).values())
    for layout, count in layouts.items():
        for name, number in layout.values.items():
            sizes[name] += count * layout.records[number][2]
            kinds.setdefault(name, set()).add("value")
        for name, reductions in layout.reductions.items():
            sizes[name] += count * sum(layout.records[number][2] for number in reductions.values())
            kinds.setdefault(name, set()).update(f"{'abs_' if of_abs else ''}{each}" for each, of_abs in reductions)
        for name in layout.shapes:
            kinds.setdefault(name, set()).add("shape")
    for name in (name for name in trial.run_index.list_in_order() if name in seen):
        count, first, last = seen[name]
        yield {
            "name": name,
            "steps": count,
            "first": first,
            "last": last,
            "bytes": sizes[name],
            "saved": sorted(kinds[name]),
        }


def _describe_array(value: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape)}
    if value.dtype.kind not in "biuf":
        return line
    flat = value.reshape(-1).astype(np.float64)
    finite = flat[np.isfinite(flat)]
    for name in ("min", "max", "mean", "std"):
        line[name] = float(getattr(finite, name)()) if finite.size else None
    line["nan"] = int(np.count_nonzero(np.isnan(flat)))
    line["inf"] = int(np.count_nonzero(np.isinf(flat)))
    return line
