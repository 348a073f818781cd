"""Prediction quality: precision, recall, F1, residuals and errors by label."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_BINS = 10


class Scores(NamedTuple):
    """Precision, recall and F1 of one class, or their average over all classes."""

    precision: float
    recall: float
    f1: float


def compute_class_scores(matrix: NDArray[np.int64]) -> list[Scores]:
    """Return precision, recall and F1 of each class.

    Precision is 0 for a class that was never predicted, and recall is 0 for a class without samples.

    >>> compute_class_scores(np.array([[3, 1], [0, 4]]))[1]
    Scores(precision=0.8, recall=1.0, f1=0.888888888888889)

    Args:
        matrix: element [label, prediction] counts the samples.
    """
    right = matrix.diagonal().astype(np.float64)
    precision = _divide(right, matrix.sum(axis=0))
    recall = _divide(right, matrix.sum(axis=1))
    return [
        Scores(one, other, 2 * one * other / (one + other) if one + other else 0.0)
        for one, other in zip(precision.tolist(), recall.tolist(), strict=True)
    ]


def compute_average_scores(matrix: NDArray[np.int64]) -> dict[str, Scores]:
    """Return the micro, macro and weighted averages over the classes that occur in labels or predictions.

    The micro average gives all samples equal weight. The macro average gives all classes equal weight. The weighted
    average weights each class by its number of samples.

    >>> compute_average_scores(np.array([[3, 1], [0, 4]]))["micro"]
    Scores(precision=0.875, recall=0.875, f1=0.875)
    """
    samples = matrix.sum(axis=1)
    is_there = samples + matrix.sum(axis=0) > 0
    scores = np.array(compute_class_scores(matrix))[is_there]
    total = int(samples.sum())
    accuracy = float(matrix.trace() / total) if total else 0.0
    weights = _divide(samples[is_there].astype(np.float64), np.full(int(is_there.sum()), total))
    return {
        "micro": Scores(accuracy, accuracy, accuracy),
        "macro": Scores(*(scores.mean(axis=0).tolist() if len(scores) else (0.0,) * 3)),
        "weighted": Scores(*(weights @ scores).tolist()) if len(scores) else Scores(0.0, 0.0, 0.0),
    }


def compute_diagonal_shares(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each label's samples that was predicted correctly; NaN for a label without samples.

    >>> compute_diagonal_shares(np.array([[3, 1], [0, 0]])).tolist()
    [0.75, nan]
    """
    samples = matrix.sum(axis=1).astype(np.float64)
    shares: NDArray[np.float64] = matrix.diagonal() / np.where(samples == 0, np.nan, samples)
    return shares


def choose_label_bins(labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return the edges of ten equally wide bins over the labels, or of one bin per value for up to ten values.

    >>> choose_label_bins(np.array([1.0, 3.0, 1.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    finite = labels[np.isfinite(labels)].astype(np.float64)
    values = np.unique(finite)
    if len(values) <= 1:
        only = float(values[0]) if len(values) else 0.0
        return np.array([only - 0.5, only + 0.5])
    if len(values) <= _MOST_BINS:
        return np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    return np.linspace(values[0], values[-1], _MOST_BINS + 1)


def compute_errors_by_bin(
    labels: NDArray[Any], predictions: NDArray[Any], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean of |label - prediction| in each bin of labels; NaN for an empty bin.

    >>> compute_errors_by_bin(np.array([0.0, 1.0, 9.0]), np.array([1.0, 1.0, 7.0]), np.array([0, 5, 10])).tolist()
    [0.5, 2.0]
    """
    bins = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, len(edges) - 2)
    errors = np.abs(labels.astype(np.float64) - predictions)
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    sums = np.bincount(bins, weights=errors, minlength=len(edges) - 1)
    means: NDArray[np.float64] = sums / np.where(counts == 0, np.nan, counts)
    return means


def compute_roc(labels: NDArray[Any], scores: NDArray[Any]) -> tuple[list[tuple[float, float]], float]:
    """Return the ROC curve of labels 0 and 1, and the area below it.

    Returns:
        Points (false positive rate, true positive rate) from (0, 0) to (1, 1), one for each distinct score, and the
        area by the trapezoidal rule. The area is NaN if only one class occurs.

    >>> compute_roc(np.array([1, 0]), np.array([0.9, 0.1]))
    ([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)], 1.0)
    """
    order = np.argsort(-scores, kind="stable")
    positive = labels[order] == 1
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits, misses = np.cumsum(positive)[ends], np.cumsum(~positive)[ends]
    if not hits[-1] or not misses[-1]:
        return [(0.0, 0.0), (1.0, 1.0)], float("nan")
    false, true = (np.concatenate([[0.0], counts / counts[-1]]) for counts in (misses, hits))
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    return list(zip(false.tolist(), true.tolist(), strict=True)), area


def _divide(above: NDArray[np.float64], below: NDArray[Any]) -> NDArray[np.float64]:
    quotients: NDArray[np.float64] = np.divide(above, below, out=np.zeros_like(above), where=below != 0)
    return quotients
