"""Evaluation metrics that SageMaker's container adds to XGBoost's own.

eval_metric may name them as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import xgboost
    from numpy.typing import NDArray

MAXIMISED = frozenset(
    {
        *("accuracy", "balanced_accuracy", "f1", "f1_binary", "f1_macro", "precision", "precision_macro"),
        *("precision_micro", "r2", "recall", "recall_macro", "recall_micro"),
    }
)
NAMES = MAXIMISED | {"mse"}
# Metrics of numbers. The others are metrics of classes.
_OF_NUMBERS = frozenset({"mse", "r2"})


def make_metric(
    names: Sequence[str], parameters: Mapping[str, Any]
) -> Callable[[NDArray[Any], xgboost.DMatrix], list[tuple[str, float]]]:
    """Return a metric function for XGBoost, which takes predictions and data and returns a value for each name.

    Predictions are the output of the objective: a number or probability for each row, or one for each row and class. A
    probability above 0.5 is class 1, as is a logit above 0. Of several classes the most probable one is predicted.
    """
    threshold = find_threshold(parameters)
    is_hinge_or_class = str(parameters.get("objective", "")) in ("binary:hinge", "multi:softmax")

    def judge(predictions: NDArray[Any], data: xgboost.DMatrix) -> list[tuple[str, float]]:
        labels = data.get_label()
        if predictions.ndim == 2:
            classes = predictions.argmax(axis=1)
        elif is_hinge_or_class:
            classes = predictions.astype(np.int64)
        else:
            classes = (predictions > threshold).astype(np.int64)
        functions = _find_functions()
        return [
            (name, float(functions[name](labels, predictions if name in _OF_NUMBERS else classes))) for name in names
        ]

    return judge


def find_threshold(parameters: Mapping[str, Any]) -> float:
    """Return the prediction above which a row is in class 1: the objective binary:logitraw predicts logits."""
    return 0.0 if parameters.get("objective") == "binary:logitraw" else 0.5


def _find_functions() -> dict[str, Callable[..., Any]]:
    from sklearn import metrics

    found = {
        "accuracy": metrics.accuracy_score,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "f1": partial(metrics.f1_score, average="macro"),
        "f1_binary": partial(metrics.f1_score, average="binary"),
        "f1_macro": partial(metrics.f1_score, average="macro"),
        "mse": metrics.mean_squared_error,
        "r2": metrics.r2_score,
    }
    for name, function in (("precision", metrics.precision_score), ("recall", metrics.recall_score)):
        for average in ("binary", "macro", "micro"):
            own_name = name if average == "binary" else f"{name}_{average}"
            # If a class is never predicted, the denominator is zero.
            found[own_name] = partial(function, average=average, zero_division=0)
    return found
