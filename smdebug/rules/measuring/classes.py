"""Class numbers of labels and predictions, from any framework's format."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# The label of samples that PyTorch's losses pass over, unless told another.
IGNORED = -100
# XGBoost's objectives that learn numbers, or an order.
_NO_CLASSES = ("reg:", "count:", "rank:", "survival:")


def to_labels(labels: NDArray[Any]) -> NDArray[np.int64] | None:
    """Class numbers of labels: whole numbers of any shape, or zeros and a one along the last axis (one-hot).

    Returns:
        A vector; None where these are no class numbers, as the targets of a regression.
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
    """Class numbers of predictions: the highest of each sample's scores, or what a single number stands for.

    Args:
        predictions: (samples, classes) scores, or one number a sample: a class number, or, where all labels are 0 or 1,
            a probability of class 1, which counts from 0.5 on. Numbers below 0 or above 1 that are no class numbers are
            scores of class 1 (logits), which count above 0.
        labels: class numbers of the samples.
        argmax: whether the last axis holds scores; without it they are taken for scores where there are more numbers
            than labels.

    Returns:
        One number a label; None where the predictions do not fit the labels, as those of a regression or a ranking.
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
    """Predictions with their scores on the last axis: PyTorch's losses take (samples, classes, ...).

    Args:
        predictions: as saved.
        labels: as saved, (samples, ...); of other shapes nothing can be told, and the predictions stay as they are.

    Returns:
        The predictions; None where the classes may be on either axis.
    """
    if predictions.ndim < 3 or predictions.ndim != labels.ndim + 1:
        return predictions
    if (predictions.shape[0], *predictions.shape[2:]) != labels.shape:
        return predictions
    return None if predictions.shape[:-1] == labels.shape else np.moveaxis(predictions, 1, -1)


def pair_classes(
    labels: NDArray[Any], predictions: NDArray[Any], objective: str = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Class numbers of labels and of predictions; None where what is learned are no classes.

    Args:
        labels: one a sample, or one-hot.
        predictions: as in `to_predicted`.
        objective: XGBoost's name of what is learned, where it is known. Without it, labels of many different values are
            taken for those of a regression.
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
    """Return the confusion matrix: element [label, prediction] counts the samples; numbers outside are left out.

    Args:
        labels: class numbers from 0.
        predicted: class numbers of the same samples.
        categories: rows and columns; None: one more than the highest number.
    """
    if categories is None:
        categories = int(max(labels.max(initial=0), predicted.max(initial=0))) + 1
    known = (labels >= 0) & (labels < categories) & (predicted >= 0) & (predicted < categories)
    flat = np.bincount(labels[known] * categories + predicted[known], minlength=categories * categories)
    return flat.reshape(categories, categories).astype(np.int64)


def _is_one_hot(rows: NDArray[Any]) -> bool:
    return bool(((rows == 0) | (rows == 1)).all() and (rows.sum(axis=-1) == 1).all())
