"""Questions about a run; answers are JSON without NaN and infinity."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError, TensorUnavailable
from smdebug.inspection.arguments import Arguments, read_count, read_index, read_mode, read_names, read_step
from smdebug.inspection.few_steps import thin_out
from smdebug.inspection.watched_run import MOST_BYTES, Reduction, WatchedRun, parse_reduction
from smdebug.mode_keys import ModeKeys
from smdebug.reading.tensor_order import order_names
from smdebug.rules.measuring.classes import count_pairs, order_scores, pair_classes
from smdebug.trials.run_collections import load_collections
from smdebug.trials.step_tensors import WorkerTensor

Answer = dict[str, Any]

# The limits of one answer.
_MOST_ROWS, _MOST_COLUMNS, _MOST_POINTS = 10_000, 400, 4000
# The maximum number of cells of a heat map. Many rows leave fewer columns, but at least _FEWEST_COLUMNS.
_MOST_CELLS, _FEWEST_COLUMNS = 120_000, 8
# Significant digits of a cell: more than a colour or a label shows.
_CELL_DIGITS = 6
_MOST_EXAMINED = 60
_SHOWN = 64
_MOST_CLASSES = 100
# Smaller magnitudes are drawn at this one.
_SMALLEST_EXPONENT = -30.0


def describe(run: WatchedRun, _: Arguments) -> Answer:
    """Return a description of the run: steps, modes, workers, tensors, and collections with their configuration.

    Tensors are in the order of the model. Only some evenly chosen steps of a long run are examined.
    """
    trial = run.trial
    steps = run.choose_steps(ModeKeys.GLOBAL, 1 << 62)
    examined = thin_out(steps, _MOST_EXAMINED)
    trial.run_index.read(examined)
    names: dict[str, set[str]] = {}
    # Most steps have the same layout.
    layouts = dict.fromkeys(index.layout for step in examined for index in trial.run_index.at(step).values())
    for layout in layouts:
        for name in layout.names:
            kinds = names.setdefault(name, set())
            kinds.update(f"{'abs_' if of_abs else ''}{each}" for each, of_abs in layout.reductions.get(name, ()))
            kinds.update(["value"] if name in layout.values else [])
    ordered = order_names(names)
    files = run.files
    known = load_collections(files, files.list_collections_files()[0]).get_collections()
    collections = []
    for name, collection in sorted(known.items()):
        members = [tensor for tensor in ordered if collection.matches(tensor)]
        collections.append({"name": name, "tensors": members, "configuration": collection.to_json_dict()})
    return {
        "steps": {
            "count": round(len(steps) * run.steps_of_each),
            "first": steps[0] if steps else None,
            "last": steps[-1] if steps else None,
        },
        "modes": [mode.name for mode in _list_modes(run, examined)],
        "workers": trial.workers(),
        "ended": trial.loaded_all_steps,
        "tensors": [{"name": name, "saved": sorted(names[name])} for name in ordered],
        "collections": [each for each in collections if each["tensors"] or each["name"] != "all"],
        "damaged": [reason for _, reason in sorted(trial.run_index.damage.items())][:_SHOWN],
        "complete": len(examined) == len(steps) and run.steps_of_each == 1.0,
    }


def _list_modes(run: WatchedRun, steps: Sequence[int]) -> list[ModeKeys]:
    modes = {index.mode for step in steps for index in run.trial.run_index.at(step).values()}
    return sorted(modes - {ModeKeys.GLOBAL}, key=lambda mode: mode.value)


def series(run: WatchedRun, arguments: Arguments) -> Answer:
    """Return minimum, maximum and mean of tensors over intervals of steps.

    Each mode and each worker of a tensor has its own series, with the keys `mode` and `worker`.

    Arguments of the question:
        tensors: names.
        reduction: such as ``abs_mean``; not needed for scalars.
        mode: the mode; GLOBAL for all steps.
        worker: the name of a worker; empty for all.
        points: the number of intervals.
        most: the maximum number of steps that are read, evenly chosen.
        first, last: the range of global steps.
        times: ``1`` for the times at which the steps were saved, in milliseconds since the epoch.
    """
    names = read_names(arguments)
    mode, reduction = read_mode(arguments), parse_reduction(arguments.get("reduction"))
    points = read_count(arguments, "points", 600, _MOST_POINTS)
    most = read_count(arguments, "most", 2000, 100_000)
    chosen = run.find_steps_of(names, mode, most, read_step(arguments, "first"), read_step(arguments, "last"))
    worker = str(arguments.get("worker") or "")
    found = []
    for name in names:
        every, known = chosen[name]
        if not every and not run.trial.has_tensor(name):
            raise TensorUnavailable(name)
        for (of_mode, of_worker), steps in run.split_steps(name, every).items():
            if worker in ("", of_worker):
                line = _read_line(run, name, of_worker, steps, reduction, points)
                if arguments.get("times") == "1":
                    line["timesMs"] = _read_times(run, name, of_worker, line["steps"])
                share = round(known * len(steps) / len(every))
                found.append({"tensor": name, "mode": of_mode.name, "worker": of_worker, "known": share, **line})
    return {"series": found, "lastStep": run.trial.last_complete_step, "ended": run.trial.loaded_all_steps}


def _read_line(
    run: WatchedRun, name: str, worker: str, steps: Sequence[int], reduction: Reduction | None, points: int
) -> Answer:
    numbers = np.asarray(run.read_numbers(name, steps, reduction, worker), dtype=np.float64)
    line = _reduce_to(points, steps, numbers)
    unread = {step for step in steps if (name, step, worker) in run.unread}
    line["notFinite"]["count"] -= len(unread)
    line["notFinite"]["first"] = [each for each in line["notFinite"]["first"] if each[0] not in unread]
    return {"read": len(steps), "unread": len(unread), **line}


def _read_times(run: WatchedRun, name: str, worker: str, steps: Sequence[int]) -> list[int | None]:
    """Read when a worker saved a tensor at steps."""
    times: list[int | None] = []
    for step in steps:
        saved = run.trial.tensor(name).saved(step).get(worker)
        records = [] if saved is None else [saved.location, *saved.reductions.values()]
        location = next((each for each in records if each is not None), None)
        found = None if location is None else run.trial.reader.read_time(location)
        times.append(None if found is None else round(found * 1000))
    return times


def _reduce_to(points: int, steps: Sequence[int], numbers: NDArray[np.float64]) -> Answer:
    """Divide steps into `points` intervals. Numbers that are not finite are counted separately."""
    finite = np.isfinite(numbers)
    not_finite = [[steps[at], _name_number(numbers[at])] for at in np.flatnonzero(~finite)[:_SHOWN]]
    parts = [part for part in np.array_split(np.arange(len(steps)), min(points, len(steps)) or 1) if part.size]
    good = [numbers[part][finite[part]] for part in parts]
    lines = {name: [_reduce(name, each) for each in good] for name in ("min", "max", "mean")}
    return {
        "steps": [steps[part[-1]] if part.size == 1 else steps[part[part.size // 2]] for part in parts],
        **lines,
        "notFinite": {"count": int((~finite).sum()), "first": not_finite},
    }


def _reduce(name: str, finite: NDArray[np.float64]) -> float | None:
    """Return minimum, maximum, mean or standard deviation (`name`) of finite numbers; None if there are none."""
    if not finite.size:
        return None
    with np.errstate(over="ignore"):
        found = float(getattr(finite, name)())
    if math.isfinite(found):
        return found
    # The sum or the squares of very large numbers overflow, and JSON has no infinity.
    largest = float(np.abs(finite).max())
    return float(getattr(finite / largest, name)()) * largest


def histogram(run: WatchedRun, arguments: Arguments) -> Answer:
    """Return histograms of a tensor over steps, one row per step.

    Arguments of the question:
        tensor: name.
        scale: ``magnitude`` for decimal exponents of absolute values, which show vanishing values, or ``value``.
        columns: the number of steps.
        bins: the number of bins.
        mode: the mode; GLOBAL for all steps.
    """
    name = str(arguments.get("tensor", ""))
    bins, columns = read_count(arguments, "bins", 48, 200), read_count(arguments, "columns", 80, _MOST_COLUMNS)
    scale = arguments.get("scale", "magnitude")
    if scale not in ("magnitude", "value"):
        raise SMDebugValueError(f"scale is {scale!r}: use magnitude or value.")
    run.trial.tensor(name)
    steps, _ = run.find_steps_of([name], read_mode(arguments), columns)[name]
    saved = [run.trial.step_tensors.saved([name], step)[0] for step in steps]
    large = [each for each in saved if each.saved.location is not None and not _may_be_read(each)]
    saved = [each for each in saved if _may_be_read(each)]
    if large and not saved:
        raise SMDebugValueError(f"{name}: {_explain_size(large[0])} Save reductions to see it over steps.")
    low, high = math.inf, -math.inf
    for each in saved:
        values = _get_numbers(_read_array(run, each), scale)
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    if low > high:
        text = f"{name} has no finite number at the examined steps, or only reductions of it were saved."
        raise SMDebugValueError(text)
    if low == high:
        low, high = low - 0.5, high + 0.5
    # Halved, because the range of two very large numbers overflows.
    edges = 2 * np.linspace(low / 2, high / 2, bins + 1)
    rows, counts = [], []
    for each in saved:
        array = _read_array(run, each)
        values = _get_numbers(array, scale)
        rows.append((np.histogram(values, edges)[0] / max(array.size, 1)).round(6).tolist())
        zeros = int(np.count_nonzero(array == 0)) if array.dtype.kind in "biuf" else 0
        counts.append({"size": int(array.size), "zero": zeros, "notFinite": _count_not_finite(array)})
    return {"tensor": name, "scale": scale, "edges": edges.tolist(), "steps": [each.step for each in saved],
            "modes": [_find_mode(run, each.step) for each in saved], "shares": rows, "counts": counts}  # fmt: skip


def _get_numbers(array: NDArray[Any], scale: str) -> NDArray[np.float64]:
    if array.dtype.kind not in "biuf":
        return np.empty(0)
    values = array.reshape(-1).astype(np.float64)
    values = values[np.isfinite(values)]
    if scale == "value":
        return values
    values = np.abs(values[values != 0])
    exponents: NDArray[np.float64] = np.maximum(np.log10(values), _SMALLEST_EXPONENT)
    return exponents


def heat_map(run: WatchedRun, arguments: Arguments) -> Answer:
    """Return a reduction of many tensors over steps, one row per tensor, in the order of the model.

    Arguments of the question:
        collection: the collection of the tensors, or
        regex: a regex that matches their names.
        reduction: such as the default, ``abs_mean``.
        columns: the maximum number of steps; with more than a thousand rows there are fewer.
        mode: the mode; GLOBAL for all steps.
    """
    trial = run.trial
    examined = run.choose_steps(read_mode(arguments), _MOST_EXAMINED)
    trial.run_index.read(examined)
    names = order_names(name for step in examined for name in trial.run_index.names(step))
    if collection := arguments.get("collection"):
        matches = trial.collection(str(collection)).matches
    else:
        try:
            matches = re.compile(str(arguments.get("regex", ""))).search  # type: ignore[assignment]
        except re.error as error:
            raise SMDebugValueError(f"regex is {arguments.get('regex')!r}: {error}.") from error
    matching = [name for name in names if matches(name)]
    names = matching[:_MOST_ROWS]
    wanted = read_count(arguments, "columns", 120, _MOST_COLUMNS)
    columns = min(wanted, max(_FEWEST_COLUMNS, _MOST_CELLS // max(len(names), 1)))
    reduction = parse_reduction(arguments.get("reduction") or "abs_mean")
    chosen = run.find_steps_of(names, read_mode(arguments), columns)
    steps = thin_out(sorted({step for found, _ in chosen.values() for step in found}), columns)
    run.read_together(names, steps, reduction)
    rows = []
    for name in names:
        at = set(run.trial.run_index.find_steps(name, steps))
        numbers = dict(zip(sorted(at), run.read_numbers(name, sorted(at), reduction), strict=True))
        rows.append([_to_json(_shorten(numbers.get(step, math.nan))) for step in steps])
    modes = [_find_mode(run, step) for step in steps]
    return {"tensors": names, "known": len(matching), "steps": steps, "modes": modes, "values": rows}


def _find_mode(run: WatchedRun, step: int) -> str:
    """Return the name of the mode of a global step, according to its first worker."""
    return next(index.mode.name for index in run.trial.run_index.at(step).values())


def _shorten(number: float) -> float:
    return float(f"{number:.{_CELL_DIGITS}g}")


def values(run: WatchedRun, arguments: Arguments) -> Answer:
    """Return a tensor at a step: its statistics and some of its numbers.

    Arguments of the question:
        tensor: name.
        step: the global step; by default the last one at which it was saved.
        index: the index of the dimensions before the last two, such as ``0,3``; filled with zeros.
    """
    name = str(arguments.get("tensor", ""))
    tensor = run.trial.tensor(name)
    step = read_step(arguments, "step")
    if step is None:
        steps, _ = run.find_steps_of([name], ModeKeys.GLOBAL, 2)[name]
        step = steps[-1] if steps else 0
    saved = run.trial.step_tensors.saved([name], step)
    answer: Answer = {"tensor": name, "step": step, "workers": [each.worker for each in saved]}
    if not saved:
        tensor.value(step)  # raises the error that explains why
    first = saved[0]
    answer["reductions"] = {
        f"{'abs_' if of_abs else ''}{each}": _to_json(run.read_numbers(name, [step], (each, of_abs))[0])
        for each, of_abs in sorted(first.saved.reductions)
    }
    if first.saved.location is None:
        return answer
    if not _may_be_read(first):
        return answer | {"tooLarge": _explain_size(first), "bytes": first.saved.location.length}
    array = _read_array(run, first)
    answer |= {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind not in "biuf":
        return answer | {"texts": [str(each) for each in array.reshape(-1)[: _SHOWN * 4]]}
    finite = array[np.isfinite(array)].astype(np.float64)
    answer |= {each: _reduce(each, finite) for each in ("min", "max", "mean", "std")}
    answer["notFinite"] = _count_not_finite(array)
    shown, index = _cut_plane(array, read_index(arguments))
    return answer | {"index": index, "plane": [[_to_json(number) for number in row] for row in shown.tolist()]}


def _cut_plane(array: NDArray[Any], index: Sequence[int]) -> tuple[NDArray[Any], list[int]]:
    """Return at most _SHOWN rows and columns of the last two dimensions, and the index of the other dimensions."""
    if array.ndim < 2:
        return array.reshape(1, -1)[:, :_SHOWN] if array.ndim else array.reshape(1, 1), []
    taken: list[int] = []
    while array.ndim > 2:
        wanted = index[len(taken)] if len(taken) < len(index) else 0
        if not 0 <= wanted < max(array.shape[0], 1):
            raise SMDebugValueError(f"index {wanted} is not in the range of 0 to {array.shape[0] - 1}.")
        if not array.shape[0]:
            return np.empty((0, 0)), taken
        array, taken = array[wanted], [*taken, wanted]
    return array[:_SHOWN, :_SHOWN], taken


def confusion(run: WatchedRun, arguments: Arguments) -> Answer:
    """Return the confusion matrix of labels and predictions, one row per label.

    Arguments of the question:
        labels, predictions: names of tensors.
        step: the global step; by default the last one at which the labels were saved.
    """
    labels, predictions = str(arguments.get("labels", "")), str(arguments.get("predictions", ""))
    for name in (labels, predictions):
        run.trial.tensor(name)
    step = read_step(arguments, "step")
    if step is None:
        steps, _ = run.find_steps_of([labels], ModeKeys.GLOBAL, 2)[labels]
        step = steps[-1] if steps else 0
    truth, scores = run.trial.tensor(labels).value(step), run.trial.tensor(predictions).value(step)
    ordered = order_scores(scores, truth)
    pairs = None if ordered is None else pair_classes(truth, ordered)
    if pairs is None or not pairs[0].size:
        raise SMDebugValueError(f"{labels} and {predictions} are not labels and scores of classes at step {step}.")
    if (highest := int(max(each.max() for each in pairs))) >= _MOST_CLASSES:
        raise SMDebugValueError(f"There are {highest + 1} classes; {_MOST_CLASSES} can be shown.")
    return {"step": step, "counts": count_pairs(*pairs).tolist()}


QUESTIONS: Mapping[str, Callable[[WatchedRun, Arguments], Answer]] = {
    "describe": describe,
    "series": series,
    "histogram": histogram,
    "heat-map": heat_map,
    "values": values,
    "confusion": confusion,
}


def _may_be_read(tensor: WorkerTensor) -> bool:
    return tensor.saved.location is not None and tensor.saved.location.length <= MOST_BYTES


def _explain_size(tensor: WorkerTensor) -> str:
    assert tensor.saved.location is not None
    size = tensor.saved.location.length / 1e9
    return f"Its value takes {size:.1f} GB; values of up to {MOST_BYTES // 1024**2} MB are shown."


def _read_array(run: WatchedRun, tensor: WorkerTensor) -> NDArray[Any]:
    assert tensor.saved.location is not None
    return run.trial.step_tensors.read_record(tensor, tensor.saved.location)


def _count_not_finite(array: NDArray[Any]) -> int:
    return int(np.count_nonzero(~np.isfinite(array))) if array.dtype.kind == "f" else 0


def _to_json(number: Any) -> Any:
    return _name_number(number) if isinstance(number, float) and not math.isfinite(number) else number


def _name_number(number: float) -> str:
    """Return the name of a number that is not finite, as JavaScript's Number parses it."""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
