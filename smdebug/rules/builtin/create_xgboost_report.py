"""CreateXgboostReport: a page about an XGBoost training."""

import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.drawing.html_page import render_bars, render_lines, render_page, render_points, render_table
from smdebug.rules.drawing.notebook import render_notebook
from smdebug.rules.measuring.classes import count_pairs, pair_classes

_FOLDER = Path("CreateXgboostReport/xgboost-reports")
_PAGE, _NOTEBOOK = "xgboost_report.html", "xgboost_report.ipynb"
_METRICS = r"^[\w.]+-[\w@.-]+$"
_HYPERPARAMETERS = "hyperparameters/"
_IMPORTANCE = "feature_importance/"
# While training goes on the page is written again at most this often, in seconds.
_REWRITE_EVERY_S = 5.0
# What these objectives predict (an order, a time) is not to be compared with a label number by number.
_UNCOMPARED = ("rank:", "survival:")
_MOST_FEATURES = 20
_MOST_POINTS = 2000


def compute_roc(labels: NDArray[Any], scores: NDArray[Any]) -> tuple[list[tuple[float, float]], float]:
    """Return the ROC curve of labels 0 and 1, and the area below it.

    Returns:
        Points (false positive rate, true positive rate) from (0, 0) to (1, 1), one a distinct score, and the area by
        the trapezoidal rule; NaN where only one class is there.

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


class CreateXgboostReport(BuiltInRule):
    """Never fires; writes an HTML page about an XGBoost training, and a notebook to go on from.

    Both are in the folder CreateXgboostReport/xgboost-reports/ of the rule's output: xgboost_report.html is one file
    without script that needs no network, xgboost_report.ipynb reads the run by itself and computes the same from it.
    They are written while training goes on, some seconds apart, and once more at the end. The page shows the
    hyperparameters, all metrics over the rounds, the importance of the features (the 20 largest of each type, without
    unit), and of the last predictions, for classes: the confusion matrix (samples) and, for two classes, the ROC curve
    with its area; for a regression: residual = label - prediction over the prediction (unit of the label), its mean
    square root, mean and spread; for a ranking neither.

    Source: AWS's documentation of the rule CreateXgboostReport (no parameters), which names both files.
    """

    inspects = "collections metrics, feature_importance, predictions, labels and hyperparameters"
    frameworks = ("XGBoost",)
    can_fire = False
    collections: ClassVar = {
        CollectionKeys.METRICS: {"save_interval": "5"},
        CollectionKeys.FEATURE_IMPORTANCE: {"save_interval": "5"},
        CollectionKeys.PREDICTIONS: {"save_interval": "5"},
        CollectionKeys.LABELS: {"save_interval": "5"},
        CollectionKeys.HYPERPARAMETERS: {"save_steps": "0"},
    }

    def _prepare(self) -> None:
        self._metrics: dict[str, list[tuple[float, float]]] = {}
        self._hyperparameters: dict[str, str] = {}
        self._importance: dict[str, dict[str, float]] = {}
        self._labels: NDArray[Any] | None = None
        self._predictions: NDArray[Any] | None = None
        self._last_step = -1
        self._written_at: float | None = None

    @property
    def path(self) -> Path:
        """Where the page is."""
        return (self.output_dir or Path()) / _FOLDER / _PAGE

    def invoke_at_step(self, step: int) -> bool:
        """Take in what this global step holds; always False."""
        names = self.tensors.names(step)
        self.inspected += self._take_metrics(step) + self._take_importance(step) + self._take_hyperparameters(step)
        for name in ("labels", "predictions"):
            values = self.tensors.read_first(name, step) if name in names else None
            if values is not None:
                setattr(self, f"_{name}", values)
                self.inspected += 1
        self._last_step = step
        known = self.base_trial.steps()
        is_last = self.base_trial.loaded_all_steps and bool(known) and step >= known[-1]
        if self._written_at is None or is_last or time.monotonic() - self._written_at >= _REWRITE_EVERY_S:
            self.finish()
        return False

    def finish(self) -> None:
        """Write the page and the notebook; whoever reads one meanwhile sees the one before."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        notebook = render_notebook(f"XGBoost training {self.base_trial.name}", self.base_trial.path)
        for path, text in ((self.path, self.render()), (self.path.with_name(_NOTEBOOK), notebook)):
            temporary = path.with_suffix(".tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        self._written_at = time.monotonic()

    def render(self) -> str:
        """Return the page as it is now."""
        sections = []
        if self._hyperparameters:
            rows = sorted(self._hyperparameters.items())
            sections.append(("Hyperparameters", render_table(["name", "value"], rows)))
        by_metric: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for name, points in sorted(self._metrics.items()):
            by_metric.setdefault(name.partition("-")[2], {})[name] = points
        sections += [
            (f"Loss curve: {metric}", render_lines(found, "round", metric)) for metric, found in by_metric.items()
        ]
        for kind, found in sorted(self._importance.items()):
            largest = sorted(found, key=lambda name: -found[name])[:_MOST_FEATURES]
            sections.append((f"Feature importance: {kind}", render_bars({name: found[name] for name in largest})))
        if self._labels is not None and self._predictions is not None:
            objective = self._hyperparameters.get("objective", "")
            sections += _render_predictions(self._labels, self._predictions, objective)
        return render_page(f"XGBoost training {self.base_trial.name}: round {self._last_step}", sections)

    def _take_metrics(self, step: int) -> int:
        names = self.tensors.choose(step, (CollectionKeys.METRICS, CollectionKeys.LOSSES), [_METRICS])
        for name in names:
            self._metrics.setdefault(name, []).append((step, self.tensors.read_mean(name, step)))
        return len(names)

    def _take_importance(self, step: int) -> int:
        names = self.tensors.choose(step, (), [f"^{_IMPORTANCE}"])
        if names:
            self._importance = {}
        for name in names:
            kind, _, feature = name.removeprefix(_IMPORTANCE).partition("/")
            self._importance.setdefault(kind, {})[feature] = self.tensors.read_mean(name, step)
        return len(names)

    def _take_hyperparameters(self, step: int) -> int:
        names = self.tensors.choose(step, (), [f"^{_HYPERPARAMETERS}"])
        for place in self.tensors.places(names, step):
            if place.saved.location is not None:
                values = self.tensors.read_record(place, place.saved.location)
                listed = ", ".join(str(each) for each in values.reshape(-1).tolist())
                self._hyperparameters[place.name.removeprefix(_HYPERPARAMETERS)] = listed
        return len(names)


def _render_predictions(labels: NDArray[Any], predictions: NDArray[Any], objective: str) -> list[tuple[str, str]]:
    if objective.startswith(_UNCOMPARED):
        return []
    pairs = pair_classes(labels, predictions, objective)
    if pairs is None:
        return _render_residuals(labels.reshape(-1), predictions.reshape(-1))
    classes, predicted = pairs
    matrix = count_pairs(classes, predicted)
    rows = [[f"label {label}", *row] for label, row in enumerate(matrix.tolist())]
    heads = ["", *(f"predicted {column}" for column in range(len(matrix)))]
    sections = [("Confusion matrix", render_table(heads, rows))]
    if len(matrix) == 2 and predictions.size == len(classes):
        points, area = compute_roc(classes, predictions.reshape(-1))
        every = -(-len(points) // _MOST_POINTS)
        curve = render_lines(
            {f"area {area:.4f}": [*points[::every], points[-1]], "chance": [(0.0, 0.0), (1.0, 1.0)]},
            "false positive rate",
            "true positive rate",
        )
        sections.append(("ROC curve", curve))
    return sections


def _render_residuals(labels: NDArray[Any], predictions: NDArray[Any]) -> list[tuple[str, str]]:
    if labels.size != predictions.size or not labels.size or labels.dtype.kind not in "biuf":
        return []
    given, made = labels.astype(np.float64), predictions.astype(np.float64)
    residuals = given - made
    every = -(-len(residuals) // _MOST_POINTS)
    points = list(zip(made[::every].tolist(), residuals[::every].tolist(), strict=True))
    numbers = [
        ("root of the mean square", float(np.sqrt(np.mean(residuals**2)))),
        ("mean", float(residuals.mean())),
        ("standard deviation", float(residuals.std())),
    ]
    return [
        (
            "Residuals",
            render_points(points, "prediction", "label - prediction") + render_table(["residuals", ""], numbers),
        )
    ]
