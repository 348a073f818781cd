"""XGBoost report page: AWS's sections in AWS's order, with explanations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.rules.drawing.html_page import (
    render_bars,
    render_histogram,
    render_lines,
    render_matrix,
    render_page,
    render_table,
    render_text,
)
from smdebug.rules.measuring.classes import count_pairs, pair_classes
from smdebug.rules.measuring.evaluation import (
    choose_label_bins,
    compute_average_scores,
    compute_class_scores,
    compute_diagonal_shares,
    compute_errors_by_bin,
    compute_roc,
)
from smdebug.rules.measuring.losses import is_better_higher

# The predictions of these objectives are an order or a time, which cannot be compared with the labels one by one.
_UNCOMPARED = ("rank:", "survival:")
_MOST_FEATURES = 20
_MOST_POINTS = 2000
_MOST_CLASSES = 20
# In a longer training, only the predictions of every second, fourth, … round are measured.
_MOST_ROUNDS = 400

Points = list[tuple[float, float]]


class Section(NamedTuple):
    """A kind of section.

    Attributes:
        heading: heading of the section, which may be followed by the name of its subject.
        meaning: explanation of what the section shows.
        what_to_do: advice for bad results.
    """

    heading: str
    meaning: str
    what_to_do: str


SECTIONS = {
    "hyperparameters": Section(
        "Hyperparameters",
        "What the training was started with.",
        "",
    ),
    "labels": Section(
        "Distribution of true labels",
        "How often each label occurs among the samples that the predictions are of.",
        "Where classes are rare, or most targets lie in one bar, metrics over all samples hide how the rest "
        "fares: weight the rare ones (scale_pos_weight, sample weights) or sample them more often.",
    ),
    "loss": Section(
        "Loss curve",
        "The metric of each data set after each round.",
        "A validation curve that turns away from the training curve is overfitting: stop there "
        "(early_stopping_rounds), or lower max_depth and eta. Where both still fall, train more rounds; where "
        "neither does, the features do not tell or eta is wrong.",
    ),
    "metric": Section(
        "Metric curve",
        "A metric that is better when higher, of each data set after each round.",
        "A validation curve that falls while the training curve rises is overfitting: stop there "
        "(early_stopping_rounds). One near the value of chance (0.5 for auc): the features do not tell.",
    ),
    "importance": Section(
        "Feature importance",
        "What the trees use: weight counts the splits on a feature, gain is what they gain on average, cover the "
        "samples that pass them; total_ is the sum over splits. The largest are shown.",
        "One feature that holds nearly all often leaks the label: check that it is known at prediction time. "
        "Features that are not used at all can be left out.",
    ),
    "confusion": Section(
        "Confusion matrix",
        "A row for each true label, a column for each prediction: samples, and the darker a field the larger its "
        "part of the row. What is right stands on the diagonal.",
        "Dark fields beside the diagonal are classes taken for each other: look at their samples, and for "
        "features that tell them apart.",
    ),
    "evaluation": Section(
        "Evaluation of the confusion matrix",
        "Precision: how much of what was predicted as a class is of it. Recall: how much of a class was found. F1 "
        "is their harmonic mean. Micro counts all samples alike (it is the accuracy), macro all classes alike, "
        "weighted the classes by their samples.",
        "Macro far below micro: rare classes fare badly, so weight them. Low precision: raise the threshold of "
        "the class; low recall: lower it.",
    ),
    "f1": Section(
        "F1 score over iterations",
        "The harmonic mean of precision and recall, round by round: the averages of all classes, and each class.",
        "Flat from early on: fewer rounds, or other features. A macro average that stays low while the weighted one "
        "rises: the rare classes are not learned, so weight them.",
    ),
    "diagonal": Section(
        "Accuracy of each diagonal element over iterations",
        "Which part of each label's samples was predicted right, round by round.",
        "A class that stays below the others or falls while they rise needs more samples or weight; where all are "
        "flat, fewer rounds would do.",
    ),
    "roc": Section(
        "ROC curve",
        "The true positive rate over the false positive rate, for every threshold of the score. The area is 1 for "
        "a perfect order and 0.5 for chance.",
        "Choose the threshold on the curve by what a false alarm and a miss cost. An area near 0.5: the features "
        "do not tell; one near 1 in validation: look for a leak of the label.",
    ),
    "residuals": Section(
        "Distribution of residuals at the last saved step",
        "residual = label - prediction, in the label's unit. A good model's lie close to 0 and as often above as "
        "below.",
        "A centre beside 0 or a long tail: look at those samples, transform the target (its logarithm), or try "
        "another objective, such as reg:absoluteerror for outliers.",
    ),
    "errors": Section(
        "Absolute validation error by label bin over iterations",
        "The mean of |label - prediction| of the samples whose label lies in each bin, round by round.",
        "A bin whose error stays high is rare or unlike the others: add samples or weight there. One whose error "
        "rises again while others fall is overfitted.",
    ),
}


@dataclass
class XgboostRun:
    """The data of a training that the page shows.

    Attributes:
        metrics: points (round, value) of each metric of each data set.
        hyperparameters: hyperparameters by name.
        importance: feature importance by kind, and then by feature.
        labels, predictions: the newest saved values.
        last_step: the newest round.
    """

    metrics: dict[str, Points] = field(default_factory=dict)
    hyperparameters: dict[str, str] = field(default_factory=dict)
    importance: dict[str, dict[str, float]] = field(default_factory=dict)
    labels: NDArray[Any] | None = None
    predictions: NDArray[Any] | None = None
    last_step: int = -1
    _rounds: dict[int, tuple[str, NDArray[np.float64]]] = field(default_factory=dict)
    _f1: dict[int, dict[str, float]] = field(default_factory=dict)
    _edges: NDArray[np.float64] | None = None
    _every: int = 1
    _seen: int = 0

    def take_predictions(self, step: int, labels: NDArray[Any] | None, predictions: NDArray[Any] | None) -> None:
        """Add the labels and predictions saved at a round; those that were not saved keep their values."""
        self.labels = self.labels if labels is None else labels
        self.predictions = self.predictions if predictions is None else predictions
        if predictions is None or self.labels is None:
            return
        if self._seen % self._every == 0:
            self._measure(step, self.labels, predictions)
        self._seen += 1
        if len(self._rounds) > _MOST_ROUNDS:
            self._rounds = dict(list(self._rounds.items())[::2])
            self._f1 = {step: scores for step, scores in self._f1.items() if step in self._rounds}
            self._every *= 2

    def render(self, title: str) -> str:
        """Return the current page."""
        sections = [
            *self._render_hyperparameters(),
            *self._render_labels(),
            *self._render_metrics(),
            *self._render_importance(),
            *self._render_predictions(),
        ]
        return render_page(f"{title}: round {self.last_step}", sections)

    @property
    def _objective(self) -> str:
        return self.hyperparameters.get("objective", "")

    def _measure(self, step: int, labels: NDArray[Any], predictions: NDArray[Any]) -> None:
        if self._objective.startswith(_UNCOMPARED):
            return
        pairs = pair_classes(labels, predictions, self._objective)
        if pairs is not None:
            matrix = count_pairs(*pairs)
            self._rounds[step] = "diagonal", compute_diagonal_shares(matrix)
            self._f1[step] = {f"{name} average": scores.f1 for name, scores in compute_average_scores(matrix).items()}
            for number, scores in enumerate(compute_class_scores(matrix)[:_MOST_CLASSES]):
                self._f1[step][f"class {number}"] = scores.f1
            return
        numbers = _compare_numbers(labels, predictions)
        if numbers is not None:
            if self._edges is None:
                self._edges = choose_label_bins(numbers[0])
            self._rounds[step] = "errors", compute_errors_by_bin(*numbers, self._edges)

    def _render_hyperparameters(self) -> list[tuple[str, str]]:
        rows = sorted(self.hyperparameters.items())
        return [_frame("hyperparameters", render_table(["name", "value"], rows))] if rows else []

    def _render_labels(self) -> list[tuple[str, str]]:
        if self.labels is None or not self.labels.size or self.labels.dtype.kind not in "biuf":
            return []
        values = self.labels.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values)]
        names, counts = np.unique(values, return_counts=True)
        if len(names) <= _MOST_CLASSES:
            shown = {f"{name:g}": float(count) for name, count in zip(names.tolist(), counts.tolist(), strict=True)}
            return [_frame("labels", render_bars(shown))]
        return [_frame("labels", render_histogram(values, "label"))]

    def _render_metrics(self) -> list[tuple[str, str]]:
        by_metric: dict[str, dict[str, Points]] = {}
        for name, points in sorted(self.metrics.items()):
            by_metric.setdefault(name.partition("-")[2], {})[name] = points
        by_kind: dict[str, list[str]] = {"loss": [], "metric": []}
        for metric in by_metric:
            by_kind["metric" if is_better_higher(f"-{metric}") else "loss"].append(metric)
        return [
            _frame(kind, render_lines(by_metric[metric], "round", metric), f": {metric}", is_first=number == 0)
            for kind, metrics in by_kind.items()
            for number, metric in enumerate(metrics)
        ]

    def _render_importance(self) -> list[tuple[str, str]]:
        sections = []
        for number, (kind, found) in enumerate(sorted(self.importance.items())):
            largest = sorted(found, key=lambda name: -found[name])[:_MOST_FEATURES]
            bars = render_bars({name: found[name] for name in largest})
            sections.append(_frame("importance", bars, f": {kind}", is_first=number == 0))
        return sections

    def _render_predictions(self) -> list[tuple[str, str]]:
        if self.labels is None or self.predictions is None or self._objective.startswith(_UNCOMPARED):
            return []
        pairs = pair_classes(self.labels, self.predictions, self._objective)
        if pairs is not None:
            return self._render_classes(*pairs, self.predictions)
        numbers = _compare_numbers(self.labels, self.predictions)
        return [] if numbers is None else self._render_residuals(*numbers)

    def _render_classes(
        self, labels: NDArray[np.int64], predicted: NDArray[np.int64], predictions: NDArray[Any]
    ) -> list[tuple[str, str]]:
        matrix = count_pairs(labels, predicted)
        averages = [(f"{name} average", *scores) for name, scores in compute_average_scores(matrix).items()]
        classes = [
            (f"class {number}", *scores, int(matrix[number].sum()))
            for number, scores in enumerate(compute_class_scores(matrix))
        ]
        heads = ["", "precision", "recall", "F1"]
        sections = [
            _frame("confusion", render_matrix(matrix.tolist(), "label", "predicted")),
            _frame("evaluation", render_table(heads, averages) + "<br>" + render_table([*heads, "samples"], classes)),
            *self._render_f1(),
            *self._render_rounds("diagonal", [f"class {number}" for number in range(len(matrix))], "right"),
        ]
        if len(matrix) == 2 and predictions.size == len(labels):
            points, area = compute_roc(labels, predictions.reshape(-1))
            every = -(-len(points) // _MOST_POINTS)
            lines = {f"area {area:.4f}": [*points[::every], points[-1]], "chance": [(0.0, 0.0), (1.0, 1.0)]}
            sections.append(_frame("roc", render_lines(lines, "false positive rate", "true positive rate")))
        return sections

    def _render_f1(self) -> list[tuple[str, str]]:
        lines: dict[str, Points] = {}
        for step in sorted(self._f1):
            for name, value in self._f1[step].items():
                lines.setdefault(name, []).append((float(step), value))
        return [_frame("f1", render_lines(lines, "round", "F1"))] if lines else []

    def _render_residuals(self, labels: NDArray[Any], predictions: NDArray[Any]) -> list[tuple[str, str]]:
        residuals = labels - predictions
        numbers = [
            ("root of the mean square", float(np.sqrt(np.mean(residuals**2)))),
            ("mean", float(residuals.mean())),
            ("standard deviation", float(residuals.std())),
        ]
        shown = render_histogram(residuals, "label - prediction") + render_table(["residuals", ""], numbers)
        edges = choose_label_bins(labels) if self._edges is None else self._edges
        names = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges.tolist())]
        return [_frame("residuals", shown), *self._render_rounds("errors", names, "|label - prediction|")]

    def _render_rounds(self, kind: str, names: Sequence[str], y_label: str) -> list[tuple[str, str]]:
        lines: Mapping[str, Points] = {
            name: [
                (float(step), float(values[at]))
                for step, (measured, values) in sorted(self._rounds.items())
                if measured == kind and at < len(values)
            ]
            for at, name in enumerate(names[:_MOST_CLASSES])
        }
        shown = {name: points for name, points in lines.items() if any(value == value for _, value in points)}
        return [_frame(kind, render_lines(shown, "round", y_label))] if shown else []


def _compare_numbers(
    labels: NDArray[Any], predictions: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the finite labels and predictions of a regression; None if they cannot be compared."""
    labels, predictions = labels.reshape(-1), predictions.reshape(-1)
    if labels.size != predictions.size or not labels.size or labels.dtype.kind not in "biuf":
        return None
    given, made = labels.astype(np.float64), predictions.astype(np.float64)
    is_finite = np.isfinite(given) & np.isfinite(made)
    return (given[is_finite], made[is_finite]) if is_finite.any() else None


def _frame(kind: str, content: str, of: str = "", *, is_first: bool = True) -> tuple[str, str]:
    """Return the heading and content of a section; only the first section of a kind contains the explanation."""
    section = SECTIONS[kind]
    advice = f"What to do: {section.what_to_do}" if section.what_to_do else ""
    text = "".join(map(render_text, filter(None, (section.meaning, advice)))) if is_first else ""
    return f"{section.heading}{of}", text + content
