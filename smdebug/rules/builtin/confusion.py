"""Confusion: too small diagonal or too large other cells of a confusion matrix."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, BuiltInRule
from smdebug.rules.measuring.classes import count_pairs, order_scores, to_labels, to_predicted
from smdebug.rules.parameters import integer, number, text
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor


def compute_shares(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """confusion[j][i] / sum over j of confusion[j][i]: what part of the predictions of class i has label j.

    Columns of classes that were never predicted are NaN.

    >>> compute_shares(np.array([[9, 0], [1, 0]])).tolist()
    [[0.9, nan], [0.1, nan]]
    """
    totals = matrix.sum(axis=0, dtype=np.float64)
    return matrix / np.where(totals == 0, np.nan, totals)


def count_known(
    labels: NDArray[np.int64], predicted: NDArray[np.int64], category_no: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the classes that occur, and their confusion matrix; a matrix of all might be too large.

    >>> classes, matrix = count_known(np.array([7, 50_000, 7]), np.array([7, 50_000, 50_000]), None)
    >>> classes.tolist(), matrix.tolist()
    ([7, 50000], [[1, 1], [0, 1]])
    """
    pairs = np.stack([labels, predicted])
    known = ((pairs >= 0) & (pairs < (np.inf if category_no is None else category_no))).all(axis=0)
    classes, places = np.unique(pairs[:, known], return_inverse=True)
    return classes, count_pairs(*places.reshape(2, -1))


class Confusion(BuiltInRule):
    """Fires at a step where too few predictions of a class are right, or too many belong to one wrong label.

    confusion[j][i] is the number of the step's samples with label j that were predicted as class i, over all workers,
    and share[j][i] = confusion[j][i] / sum_j confusion[j][i], without unit. The rule fires if share[i][i] < min_diag,
    or if share[j][i] > max_off_diag for some j != i. Classes that were never predicted are left out.

    The tensors are those named by `labels` and `predictions`; where there is none, those of the collections
    labels_collection and predictions_collection, paired in the order of their names. Of a Keras model, save the
    collection outputs instead of these two: it has tensors of both names. If category_no is None, the highest class
    number gives the number of classes. A probability of at least 0.5 means class 1; in a row of scores, the highest is
    the predicted class. The rule judges steps from start_step up to, but not including, end_step.

    Source: AWS's documentation of the rule Confusion (category_no None, labels "labels", predictions "predictions",
    labels_collection "labels", predictions_collection "predictions", min_diag 0.9, max_off_diag 0.1). Taken literally,
    its formula divides the diagonal by the diagonal's own sum, and two classes of the same size could not pass. Here
    all elements are divided by the sum of their column, as AWS documents it for those off the diagonal.
    """

    parameters = (
        integer("category_no", None, minimum=2),
        text("labels", "labels"),
        text("predictions", "predictions"),
        text("labels_collection", CollectionKeys.LABELS),
        text("predictions_collection", CollectionKeys.PREDICTIONS),
        number("min_diag", 0.9, minimum=0.0, maximum=1.0),
        number("max_off_diag", 0.1, minimum=0.0, maximum=1.0),
        integer("start_step", None, minimum=0),
        integer("end_step", None, minimum=0),
    )
    inspects = "labels and predictions (tensors of these names, or collections)"
    needs = "labels and predictions of the same samples must be saved with their values"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {
        CollectionKeys.LABELS: {"save_interval": "5"},
        CollectionKeys.PREDICTIONS: {"save_interval": "5"},
    }
    example: ClassVar = {"category_no": "10", "min_diag": "0.8", "max_off_diag": "0.2"}
    advice = (
        "Look at samples of the two classes: their labels may be swapped, or the classes may hardly differ.",
        "Early steps confuse all classes: set start_step to a step at which the model should be accurate.",
        "For hard tasks, lower min_diag and raise max_off_diag to what is good enough.",
    )

    def invoke_at_step(self, step: int) -> bool:
        """Whether classes are confused at this global step; TensorUnavailableForStep if labels cannot be paired."""
        first, last = self.values["start_step"], self.values["end_step"]
        if (first is not None and step < first) or (last is not None and step >= last):
            return False
        labels, predictions = self._choose("labels", step), self._choose("predictions", step)
        if not labels or not predictions:
            return False
        workers = {place.worker for place in labels}
        pairs = [pair for worker in sorted(workers) for pair in zip(*_of(worker, labels, predictions), strict=False)]
        found = self._add_up(pairs)
        return self.inspect([labels[0]], lambda place: None if found is None else self._judge(place, *found))

    def _choose(self, what: str, step: int) -> list[WorkerTensor]:
        name: str = self.values[what]
        names = [name] if name in self.tensors.names(step) else []
        return self.tensors.saved(names or self.tensors.choose(step, [self.values[f"{what}_collection"]]), step)

    def _pair(
        self, labels: WorkerTensor, predictions: WorkerTensor
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        raw, saved = self.tensors.read(labels), self.tensors.read(predictions)
        classes = None if raw is None else to_labels(raw)
        scores = None if raw is None or saved is None else order_scores(saved, raw)
        predicted = None if classes is None or scores is None else to_predicted(scores, classes)
        return None if classes is None or predicted is None else (classes, predicted)

    def _add_up(
        self, pairs: list[tuple[WorkerTensor, WorkerTensor]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        found = [found for one, other in pairs if (found := self._pair(one, other)) is not None]
        if not found:
            return None
        labels, predicted = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return count_known(labels, predicted, self.values["category_no"])

    def _judge(self, place: WorkerTensor, classes: NDArray[np.int64], matrix: NDArray[np.int64]) -> bool:
        shares = compute_shares(matrix)
        right = Limit("smallest share of right predictions of a class", self.values["min_diag"], "below")
        wrong = Limit("largest share of one wrong label", self.values["max_off_diag"])
        others = shares.copy()
        np.fill_diagonal(others, 0)
        columns = np.flatnonzero(np.isfinite(shares[0])).tolist()
        # All are watched before one fires.
        for column in columns:
            self.watch_limit(right, place.step, float(shares[column, column]), place.name, place.worker)
            self.watch_limit(wrong, place.step, float(others[:, column].max()), place.name, place.worker)
        return bool(columns) and self._judge_worst(place, classes, columns, shares, others, right, wrong)

    def _judge_worst(
        self,
        place: WorkerTensor,
        classes: NDArray[np.int64],
        columns: list[int],
        shares: NDArray[np.float64],
        others: NDArray[np.float64],
        right: Limit,
        wrong: Limit,
    ) -> bool:
        """Name the class that the plot shows: that of the smallest share, or of the largest one of a wrong label."""
        least = min(columns, key=lambda column: float(shares[column, column]))
        share, limit = float(shares[least, least]), right.threshold
        if right.is_passed_by(share):
            sentence = (
                f"{share:.4g} of the predictions of class {classes[least]} are right, less than min_diag {limit:g}"
            )
            return self.find(place.name, place.step, share, limit, sentence)
        most = max(columns, key=lambda column: float(others[:, column].max()))
        highest, label, limit = float(others[:, most].max()), classes[others[:, most].argmax()], wrong.threshold
        if wrong.is_passed_by(highest):
            sentence = (
                f"{highest:.4g} of the predictions of class {classes[most]} have label {label}, more than "
                f"max_off_diag {limit:g}"
            )
            return self.find(place.name, place.step, highest, limit, sentence)
        return False


def _of(worker: str, *found: list[WorkerTensor]) -> list[list[WorkerTensor]]:
    return [[place for place in places if place.worker == worker] for places in found]
