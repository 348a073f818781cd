"""CreateXgboostReport: a report page about an XGBoost training."""

import time
from pathlib import Path
from typing import ClassVar

from smdebug.config.collection import CollectionKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.drawing.notebook import render_notebook
from smdebug.rules.drawing.xgboost_page import XgboostRun
from smdebug.storage.output import write_whole_file

_PAGE, _NOTEBOOK = "xgboost_report.html", "xgboost_report.ipynb"
_METRICS = r"^[\w.]+-[\w@.-]+$"
_HYPERPARAMETERS = "hyperparameters/"
_IMPORTANCE = "feature_importance/"
# While training goes on the page is written again at most this often, in seconds.
_REWRITE_EVERY_S = 5.0


class CreateXgboostReport(BuiltInRule):
    """Never fires; writes an HTML report on an XGBoost training, and a notebook for further analysis.

    Both files are in the rule's output folder, rule-output/<RuleConfigurationName>/. xgboost_report.html is one file
    without scripts that needs no network. xgboost_report.ipynb reads the saved tensors and computes the same figures.
    The rule rewrites both every few seconds during the training, and once more at its end.

    The report shows the hyperparameters, the distribution of the labels, all metrics over the rounds, and the
    importance of the features (the 20 largest of each type, without unit). The other sections depend on the task:

    * Classification, of the last predictions: the confusion matrix (samples), precision, recall and F1 of each class
      with their micro, macro and weighted averages, and for two classes the ROC curve with its area. Over the rounds:
      the F1 scores, and the accuracy of each class (samples predicted correctly / samples of the label).
    * Regression: the distribution of residual = label - prediction (unit of the label), its root mean square, mean and
      spread, and over the rounds the mean of |label - prediction| in ten bins of labels.
    * Ranking: none.

    Each section explains what it shows and what to do.

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
        self._run = XgboostRun()
        self._written_at: float | None = None

    @property
    def path(self) -> Path:
        """Where the page is."""
        return (self.output_dir or Path()) / _PAGE

    def invoke_at_step(self, step: int) -> bool:
        """Take in what this global step holds; always False."""
        names = self.tensors.names(step)
        self.inspected += self._take_metrics(step) + self._take_importance(step) + self._take_hyperparameters(step)
        labels, predictions = (
            self.tensors.read_first(name, step) if name in names else None for name in ("labels", "predictions")
        )
        self.inspected += (labels is not None) + (predictions is not None)
        self._run.take_predictions(step, labels, predictions)
        self._run.last_step = step
        known = self.base_trial.steps()
        is_last = self.base_trial.loaded_all_steps and bool(known) and step >= known[-1]
        if self._written_at is None or is_last or time.monotonic() - self._written_at >= _REWRITE_EVERY_S:
            self.finish()
        return False

    def finish(self) -> None:
        """Write the page and the notebook; whoever reads one meanwhile sees the one before."""
        notebook = render_notebook(f"XGBoost training {self.base_trial.name}", self.base_trial.path)
        for path, text in ((self.path, self.render()), (self.path.with_name(_NOTEBOOK), notebook)):
            write_whole_file(str(path), [text.encode()])
        self._written_at = time.monotonic()

    def render(self) -> str:
        """Return the page as it is now."""
        return self._run.render(f"XGBoost training {self.base_trial.name}")

    def remark(self) -> str:
        """Say where the page is."""
        if self._written_at is None:
            return ""
        return f"It wrote {_PAGE} and {_NOTEBOOK} into {self.output_name or self.path.parent.absolute()}."

    def _take_metrics(self, step: int) -> int:
        names = self.tensors.choose(step, (CollectionKeys.METRICS, CollectionKeys.LOSSES), [_METRICS])
        for name in names:
            self._run.metrics.setdefault(name, []).append((step, self.tensors.read_mean(name, step)))
        return len(names)

    def _take_importance(self, step: int) -> int:
        names = self.tensors.choose(step, (), [f"^{_IMPORTANCE}"])
        if names:
            self._run.importance = {}
        for name in names:
            kind, _, feature = name.removeprefix(_IMPORTANCE).partition("/")
            self._run.importance.setdefault(kind, {})[feature] = self.tensors.read_mean(name, step)
        return len(names)

    def _take_hyperparameters(self, step: int) -> int:
        names = self.tensors.choose(step, (), [f"^{_HYPERPARAMETERS}"])
        for place in self.tensors.saved(names, step):
            if place.saved.location is not None:
                values = self.tensors.read_record(place, place.saved.location)
                listed = ", ".join(str(each) for each in values.reshape(-1).tolist())
                self._run.hyperparameters[place.name.removeprefix(_HYPERPARAMETERS)] = listed
        return len(names)
