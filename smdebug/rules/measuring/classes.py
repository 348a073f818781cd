"""Class numbers of labels and predictions, from any framework's format."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The label of samples that PyTorch's losses ignore by default.
IGNORED = -100
# Prefixes of XGBoost's objectives that learn numbers or an order.
_NO_CLASSES = ("reg:", "count:", "rank:", "survival:")


def to_labels(labels: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the class numbers of labels, which are integers of any shape, or one-hot along the last axis.

    Returns:
        A vector; None if the labels are not class numbers, for example the targets of a regression.
    """
    if labels.dtype.kind not in "biuf":
        return None
    if labels.ndim >= 2 and labels.shape[-1] > 1 and labels.size and _is_one_hot(labels):
        hot: NDArray[np.int64] = labels.argmax(axis=-1).reshape(-1).astype(np.int64)
        return hot
    flat = labels.reshape(-1)
    if flat.dtype.kind == "f" and not (np.isfinite(flat).all() and (flat == np.floor(flat)).all()):
        return None
    return flat.astype(np.int64)


def to_predicted(
    predictions: NDArray[Any], labels: NDArray[np.int64], *, argmax: bool = False
) -> NDArray[np.int64] | None:
    """Return the class numbers of predictions: the class with the highest score, or the class of a single number.

    Args:
        predictions: scores of shape (samples, classes), or one number per sample. A single number is a class number or,
            if all labels are 0 or 1, a probability of class 1, which selects class 1 from 0.5 on. If numbers below 0 or
            above 1 are not class numbers, all numbers are logits of class 1, which select class 1 above 0.
        labels: class numbers of the samples.
        argmax: whether the last axis contains scores. If False, this is assumed only if there are more predictions than
            labels.

    Returns:
        One class number per label; None if the predictions do not match the labels, as in a regression or a ranking.
    """
    if predictions.dtype.kind not in "biuf" or not predictions.size or not np.isfinite(predictions).all():
        return None
    if (argmax or predictions.size > len(labels)) and predictions.ndim > 1 and predictions.shape[-1] > 1:
        flat = predictions.argmax(axis=-1).reshape(-1)
    else:
        flat = predictions.reshape(-1)
        if flat.dtype.kind == "f" and (flat != np.floor(flat)).any():
            if ((labels < 0) | (labels > 1)).any():
                return None
            is_probability = flat.min() >= 0 and flat.max() <= 1
            flat = flat >= 0.5 if is_probability else flat > 0
    return flat.astype(np.int64) if len(flat) == len(labels) else None


def order_scores(predictions: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any] | None:
    """Return predictions with their scores on the last axis; PyTorch's losses expect (samples, classes, ...).

    Args:
        predictions: predictions as saved.
        labels: labels as saved, of shape (samples, ...). If they have another shape, the axis of the scores is unknown,
            and the predictions are returned unchanged.

    Returns:
        The predictions; None if either axis may be that of the classes.
    """
    if predictions.ndim < 3 or predictions.ndim != labels.ndim + 1:
        return predictions
    if (predictions.shape[0], *predictions.shape[2:]) != labels.shape:
        return predictions
    return None if predictions.shape[:-1] == labels.shape else np.moveaxis(predictions, 1, -1)


def pair_classes(
    labels: NDArray[Any], predictions: NDArray[Any], objective: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the class numbers of labels and of predictions; None if the model does not learn classes.

    Args:
        labels: one label per sample, or one-hot.
        predictions: as in `to_predicted`.
        objective: XGBoost's objective, if known. If it is unknown, labels with many different values are treated as
            those of a regression.
    """
    if objective.startswith(_NO_CLASSES) and objective != "reg:logistic":
        return None
    classes = to_labels(labels)
    if classes is None or not classes.size:
        return None
    is_told = objective.startswith(("binary:", "multi:"))
    if not is_told and len(np.unique(classes)) > max(2, int(len(classes) ** 0.5)):
        return None
    predicted = to_predicted(predictions, classes)
    if predicted is None or min(classes.min(), predicted.min()) < 0:
        return None
    return classes, predicted


def count_pairs(
    labels: NDArray[np.int64], predicted: NDArray[np.int64], categories: int | None = None
) -> NDArray[np.int64]:
    """Return the confusion matrix, whose element [label, prediction] counts samples; other class numbers are ignored.

    Args:
        labels: class numbers, from 0 on.
        predicted: predicted class numbers of the same samples.
        categories: number of rows and columns; None for one more than the highest class number.
    """
    if categories is None:
        categories = int(max(labels.max(initial=0), predicted.max(initial=0))) + 1
    known = (labels >= 0) & (labels < categories) & (predicted >= 0) & (predicted < categories)
    flat = np.bincount(labels[known] * categories + predicted[known], minlength=categories * categories)
    return flat.reshape(categories, categories).astype(np.int64)


def _is_one_hot(rows: NDArray[Any]) -> bool:
    return bool(((rows == 0) | (rows == 1)).all() and (rows.sum(axis=-1) == 1).all())
