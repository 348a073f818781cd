"""A run as a long table: one line for each scalar and each saved reduction."""

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
# A record with one number in it is no longer than this, unless its name is: larger ones are not read to find out.
_SCALAR_BYTES = 512

_Row = tuple[int, str | None, int | None, str, str, str | None, float]


def build_frame(
    trial: OpenRun,
    regex: str | Iterable[str] | None = None,
    *,
    mode: ModeKeys = ModeKeys.GLOBAL,
    with_values: bool = True,
) -> "pandas.DataFrame":
    """Return a long table of the scalars and saved reductions of a run; pandas's `pivot` makes any other table of it.

    Args:
        trial: the run.
        regex: only tensors in whose names one of these is found.
        mode: only steps of this mode; GLOBAL takes all.
        with_values: False leaves out scalars and takes saved reductions only.

    Returns:
        A pandas.DataFrame with the columns step (global), mode (its name), mode_step, worker, tensor, reduction (None
        for a scalar; min, abs_mean ... for a reduction) and value (float64), sorted by step and worker, and the
        tensors of each in the order of the model. A scalar is a saved tensor of exactly one number. What cannot be
        read because a file is damaged is left out and said in the log.

    Raises:
        SMDebugError: pandas is not installed.
        KeyError: no step of the mode was saved.
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
    places: list[tuple[int, tuple[str, str, str | None], TensorLocation]] = []
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
                    places.append((step, (worker, name, None), saved.location))
                for (reduction, of_absolute), location in sorted(saved.reductions.items()):
                    places.append((step, (worker, name, f"{'abs_' if of_absolute else ''}{reduction}"), location))
    keys = iter([key for _, key, _ in places])
    for step, location in trial.reader.read_ahead([(step, location) for step, _, location in places]):
        worker, name, shown = next(keys)
        value = _read_number(trial, name, location, step)
        if value is not None:
            place = trial.mode_modestep(step)
            yield step, place[0] and place[0].name, place[1], worker, name, shown, value


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
