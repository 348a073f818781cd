"""Matplotlib plots of tensors over steps."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.analysis.line_styles import choose_style, label_line
from smdebug.exceptions import SMDebugError, SMDebugValueError, TensorUnavailable
from smdebug.format.reductions import check_reduction_name
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE_INCHES = (8.0, 4.5)
# A legend of more lines does not fit beside the plot.
_LEGEND_LINES = 30


class ReductionRequired(SMDebugValueError):  # noqa: N818 -- beside TensorUnavailable
    """A tensor of more than one number is to be plotted without a reduction."""

    def __init__(self, tname: str, size: int) -> None:
        super().__init__(tname, size)
        self.tname = tname
        self.size = size

    def __str__(self) -> str:
        return (
            f"Tensor {self.tname} has {self.size} numbers at a step: use a reduction, such as reduction='mean', "
            "or plot_histogram."
        )


class _LineKey(NamedTuple):
    name: str
    worker: str
    mode: ModeKeys


def plot(
    trial: OpenRun,
    tensors: str | Iterable[str],
    reduction: str | None = None,
    *,
    mode: ModeKeys = ModeKeys.GLOBAL,
    abs: bool = False,  # noqa: A002 -- the name that reduction_value uses
    axes: "Axes | None" = None,
) -> "Axes":
    """Plot a scalar or a reduction over steps, one line per tensor, mode and worker.

    The legend names modes and workers if there are several.

    Args:
        trial: the run.
        tensors: the name of a tensor, a regex that matches names, or several of these.
        reduction: min, max, mean, std, variance, sum, prod, l1 or l2; required for tensors of more than one number.
        mode: the mode; GLOBAL for the lines of all modes over global steps.
        abs: reduce the absolute values.
        axes: the axes to draw into; new ones by default.

    Returns:
        The axes; `axes.figure.savefig("loss.png")` saves the plot, and notebooks show it.

    Raises:
        SMDebugError: matplotlib is not installed.
        TensorUnavailable: no name matches.
        SMDebugValueError: the reduction does not exist.
        ReductionRequired: a tensor has more than one number at a step.
        TensorUnavailableForStep: neither reduction nor value was saved, or a file is damaged.
    """
    if reduction is not None:
        check_reduction_name(reduction)
    names = _find_names(trial, tensors, mode)
    axes = axes or _make_axes()
    lines: dict[_LineKey, tuple[list[int], list[float]]] = {}
    for name in names:
        tensor = trial.tensor(name)
        for step in tensor.steps(mode):
            for worker in tensor.workers(step, mode):
                value = (
                    tensor.value(step, mode, worker)
                    if reduction is None
                    else tensor.reduction_value(step, reduction, mode, worker, abs)
                )
                of_line = trial.mode_modestep(step)[0] or mode if mode is ModeKeys.GLOBAL else mode
                steps, numbers = lines.setdefault(_LineKey(name, worker, of_line), ([], []))
                steps.append(step)
                numbers.append(_get_number(name, value))
    _draw_lines(axes, lines)
    shown = None if reduction is None else f"{reduction} of absolute values" if abs else reduction
    axes.set_xlabel("global step" if mode is ModeKeys.GLOBAL else f"{mode.name} step")
    axes.set_ylabel(shown or "value")
    axes.set_title(f"{name_run(trial)}: {names[0] if len(names) == 1 else f'{len(names)} tensors'}")
    axes.grid(visible=True, alpha=0.3)
    if 1 < len(lines) <= _LEGEND_LINES:
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def plot_histogram(
    trial: OpenRun,
    tname: str,
    *,
    mode: ModeKeys = ModeKeys.GLOBAL,
    worker: str | None = None,
    bins: int = 60,
    axes: "Axes | None" = None,
) -> "Axes":
    """Plot the distribution of a tensor as a heat map: steps on the x axis, values on the y axis.

    The values are read twice, for the range and for the counts, so that only those of one step are in memory.

    Args:
        trial: the run.
        tname: the name of the tensor; its values must have been saved.
        mode: the mode.
        worker: the worker that saved the values; None for the first one by name at each step.
        bins: the number of bins.
        axes: the axes to draw into; new ones by default.

    Returns:
        The axes, with a colour bar for the share of a step's finite values.

    Raises:
        SMDebugError: matplotlib is not installed.
        TensorUnavailable: the tensor does not exist.
        SMDebugValueError: bins is less than 1, or the tensor has no finite number.
        TensorUnavailableForStep: only reductions were saved, or a file is damaged.
    """
    if bins < 1:
        raise SMDebugValueError(f"bins must be at least 1, not {bins}.")
    tensor = trial.tensor(tname)
    axes = axes or _make_axes()
    low, high = np.inf, -np.inf
    steps = []
    for step, value, _ in tensor.walk(mode, worker):
        finite = _get_finite(value)
        steps.append(step)
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if low > high:
        raise SMDebugValueError(f"Tensor {tname} has no finite number in mode {mode.name}: there is nothing to plot.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    shares = np.zeros((bins, len(steps)))
    for column, (_, value, _) in enumerate(tensor.walk(mode, worker)):
        finite = _get_finite(value)
        if column < len(steps) and finite.size:
            shares[:, column] = np.histogram(finite, edges)[0] / finite.size
    # Columns have equal widths, whatever the distance between steps.
    mesh = axes.pcolormesh(np.arange(len(steps) + 1), edges, shares, cmap="Blues")
    ticks = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), 8)).astype(int))
    axes.set_xticks(ticks + 0.5, [str(steps[tick]) for tick in ticks])
    axes.set_xlabel("global step" if mode is ModeKeys.GLOBAL else f"{mode.name} step")
    axes.set_ylabel("value")
    axes.set_title(f"{name_run(trial)}: {tname}")
    axes.figure.colorbar(mesh, ax=axes, label="share of values")
    return axes


def name_run(trial: OpenRun) -> str:
    """Return the name of a run for titles: the name of the job if the path is `<job>/debug-output`."""
    parts = trial.path.rstrip("/").split("/")
    return parts[-2] if trial.name == "debug-output" and len(parts) > 1 and parts[-2] else trial.name


def _find_names(trial: OpenRun, tensors: str | Iterable[str], mode: ModeKeys) -> list[str]:
    wanted = [tensors] if isinstance(tensors, str) else list(tensors)
    found: dict[str, None] = {}
    for each in wanted:
        names = [each] if trial.has_tensor(each) else trial.tensor_names(regex=each, mode=mode)
        if not names:
            raise TensorUnavailable(each)
        found.update(dict.fromkeys(names))
    trial.run_index.read_all()
    return [name for name in trial.run_index.list_in_order() if name in found]


def _draw_lines(axes: "Axes", lines: Mapping[_LineKey, tuple[list[int], list[float]]]) -> None:
    modes = sorted({key.mode for key in lines}, key=lambda mode: mode.value)
    workers = sorted({key.worker for key in lines})
    subjects = list(dict.fromkeys((key.name, key.worker) for key in lines))
    # The lines of a subject are together.
    keys = sorted(lines, key=lambda key: (subjects.index((key.name, key.worker)), key.mode.value))
    for key in keys:
        steps, numbers = lines[key]
        style = choose_style(key.mode, subjects.index((key.name, key.worker)), len(subjects))
        axes.plot(
            steps,
            numbers,
            label=label_line(key.name, key.mode, key.worker, modes, workers),
            color=style.colour,
            linestyle=(0, style.dashes) if style.dashes else "solid",
            marker="." if len(steps) <= 50 else None,
            linewidth=1.2,
        )


def _make_axes() -> "Axes":
    try:
        from matplotlib.pyplot import subplots
    except ImportError as error:
        raise SMDebugError("Plots need matplotlib: pip install 'smdebug-emulator[analysis]', or matplotlib.") from error
    made: Axes
    _, made = subplots(figsize=_SIZE_INCHES, layout="constrained")
    return made


def _get_number(name: str, value: Any) -> float:
    array = np.asarray(value)
    if array.size != 1:
        raise ReductionRequired(name, array.size)
    return float(array.reshape(-1)[0])


def _get_finite(value: NDArray[Any]) -> NDArray[Any]:
    if value.dtype.kind not in "biuf":
        raise SMDebugValueError(f"Values of type {value.dtype} have no histogram: they are not numbers.")
    flat = value.reshape(-1).astype(np.float64)
    return flat[np.isfinite(flat)]
