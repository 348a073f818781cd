"""Metrics of the latest boosting round, by XGBoost's names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

SPREAD_PREFIX = "std/"
# Of the metrics that XGBoost maximises, those that smdebug's regex of the collection losses leaves out.
_NO_LOSSES = ("auc", "map")


class Metric(NamedTuple):
    """One number that a round was judged by.

    Attributes:
        name: `<evaluation set>-<metric>`; the spread over the folds of a cross-validation has `std/` before it.
        value: as XGBoost has it, NaN included.
        is_loss: whether it belongs to the collection losses, too.
    """

    name: str
    value: float
    is_loss: bool


def get_newest_metrics(evals_log: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[Metric]:
    """Yield the newest value of each metric; of a cross-validation the mean over its folds and the spread.

    Args:
        evals_log: history by evaluation set and metric, as callbacks get it; pairs (mean, standard deviation) of a
            cross-validation.
    """
    for data_name, histories in evals_log.items():
        for metric, history in histories.items():
            if not history:
                continue
            name, newest = f"{data_name}-{metric}", history[-1]
            is_loss = not metric.endswith(_NO_LOSSES)
            if isinstance(newest, tuple):
                mean, spread = newest
                yield Metric(name, float(mean), is_loss)
                yield Metric(f"{SPREAD_PREFIX}{name}", float(spread), is_loss=False)
            else:
                yield Metric(name, float(newest), is_loss)
