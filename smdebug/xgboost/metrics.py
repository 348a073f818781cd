"""Metrics of the latest boosting round, by XGBoost's names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

SPREAD_PREFIX = "std/"
# Metrics that XGBoost maximises and that smdebug's regex of the collection losses excludes.
_NO_LOSSES = ("auc", "map")


class Metric(NamedTuple):
    """The value of a metric after a round.

    Attributes:
        name: `<evaluation set>-<metric>`. The standard deviation over the folds of a cross-validation has the prefix
            `std/`.
        value: value from XGBoost, which may be NaN.
        is_loss: whether the metric also belongs to the collection losses.
    """

    name: str
    value: float
    is_loss: bool


def get_newest_metrics(evals_log: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[Metric]:
    """Yield the newest value of each metric; for a cross-validation, the mean and standard deviation over its folds.

    Args:
        evals_log: history by evaluation set and metric, as XGBoost passes it to callbacks. The values of a
            cross-validation are pairs (mean, standard deviation).
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
