"""Pandas tables of the scalars and saved reductions of a run."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.format.tensor_location import TensorLocation
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.reading.open_run import OpenRun

if TYPE_CHECKING:
    import pandas

COLUMNS = ("step", "mode", "mode_step", "worker", "tensor", "reduction", "value")
# The record of a scalar is at most this long, plus four times its name. Longer ones are not read.
_SCALAR_BYTES = 512

_Row = tuple[int, str | None, int | None, str, str, str | None, float]


def build_frame(
    trial: OpenRun,
    regex: str | Iterable[str] | None = None,
    *,
    mode: ModeKeys = ModeKeys.GLOBAL,
    with_values: bool = True,
) -> "pandas.DataFrame":
    """Return the scalars and saved reductions of a run as a table in long format, one row per number.

    Args:
        trial: the run.
        regex: only tensors whose names match one of these.
        mode: only steps of this mode; GLOBAL for all steps.
        with_values: include scalars, not only saved reductions.

    Returns:
        A pandas.DataFrame with the columns step (global), mode (its name), mode_step, worker, tensor, reduction (None
        for a scalar; min, abs_mean ... for a reduction) and value (float64), sorted by step and worker, then in the
        tensor order of the model. A scalar is a saved tensor of exactly one number. Values in damaged files are left
        out and logged.

    Raises:
        SMDebugError: pandas is not installed.
        KeyError: no step was saved in the mode.
    """
    try:
        import pandas
    except ImportError as error:
        raise SMDebugError("to_frame needs pandas: pip install 'smdebug-emulator[analysis]', or pandas.") from error
    wanted = set(trial.tensor_names(regex=regex, mode=mode))
    names = [name for name in trial.run_index.list_in_order() if name in wanted]
    rows = list(_list_rows(trial, names, mode, with_values=with_values))
    return pandas.DataFrame.from_records(rows, columns=list(COLUMNS))


def _list_rows(trial: OpenRun, names: list[str], mode: ModeKeys, *, with_values: bool) -> Iterator[_Row]:
    found: list[tuple[int, tuple[str, str, str | None], TensorLocation]] = []
    for mode_step in trial.steps(mode, show_incomplete_steps=True):
        step = trial.global_step(mode, mode_step)
        if step is None:
            continue
        for worker, index in sorted(trial.run_index.at(step).items()):
            for name in (name for name in names if name in index.layout.names):
                saved = index.find(name)
                if saved is None:
                    continue
                if with_values and saved.location is not None and _may_be_scalar(saved.location):
                    found.append((step, (worker, name, None), saved.location))
                for (reduction, of_absolute), location in sorted(saved.reductions.items()):
                    found.append((step, (worker, name, f"{'abs_' if of_absolute else ''}{reduction}"), location))
    keys = iter([key for _, key, _ in found])
    for step, location in trial.reader.read_ahead([(step, location) for step, _, location in found]):
        worker, name, shown = next(keys)
        value = _read_number(trial, name, location, step)
        if value is not None:
            mode_of_step, number = trial.mode_modestep(step)
            yield step, mode_of_step and mode_of_step.name, number, worker, name, shown, value


def _may_be_scalar(location: TensorLocation) -> bool:
    return location.length <= _SCALAR_BYTES + 4 * len(location.tensorname)


def _read_number(trial: OpenRun, name: str, location: TensorLocation, step: int) -> float | None:
    try:
        value: Any = trial.reader.read(name, location, step)
    except TensorUnavailableForStep as error:
        get_logger().warning("%s", error)
        return None
    if value.size != 1 or value.dtype.kind not in "biuf":
        return None
    return float(value.reshape(-1)[0])
