"""Notebooks, and the XGBoost report as a notebook with its code.

The notebook contains the report's figures, each with the code that draws it.
"""

import json
from collections.abc import Sequence
from typing import Any

from smdebug.rules.drawing.xgboost_page import SECTIONS

_OPEN = """\
import numpy as np
from matplotlib import pyplot
from smdebug.rules.measuring.classes import count_pairs, pair_classes
from smdebug.rules.measuring.evaluation import (
    choose_label_bins, compute_average_scores, compute_class_scores, compute_diagonal_shares, compute_errors_by_bin,
    compute_roc,
)
from smdebug.trials import create_trial

trial = create_trial({path!r})
trial.steps()"""

_METRICS = """\
metrics = sorted(trial.tensor_names(collection="metrics"))
kinds = sorted({name.partition("-")[2] for name in metrics})
for kind in kinds:
    axes = trial.plot([name for name in metrics if name.endswith(f"-{kind}")])
    axes.set_title(kind)"""

_IMPORTANCE = """\
def importance(kind, step):
    prefix = f"feature_importance/{kind}/"
    names = trial.tensor_names(regex=f"^{prefix}", step=step)
    return {name.removeprefix(prefix): float(trial.tensor(name).value(step).mean()) for name in names}


saved = [step for step in trial.steps() if trial.tensor_names(regex="^feature_importance/", step=step)]
for feature, share in sorted(importance("gain", saved[-1]).items(), key=lambda each: -each[1])[:20] if saved else []:
    print(f"{feature:>20} {share:.4f}")"""

_PREDICTIONS = """\
labels = predictions = None
if {"labels", "predictions"} <= set(trial.tensor_names()):
    step = trial.tensor("predictions").steps()[-1]
    labels, predictions = (trial.tensor(name).value(step) for name in ("labels", "predictions"))
    print(f"round {step}: {len(labels)} labels, predictions of shape {predictions.shape}")"""

_LABELS = """\
if labels is not None and labels.dtype.kind in "biuf":
    figure, axes = pyplot.subplots()
    axes.hist(labels.ravel(), bins=min(30, len(np.unique(labels))))
    axes.set(xlabel="label", ylabel="samples")"""

_CONFUSION = """\
objective = ""
if trial.has_tensor("hyperparameters/objective"):
    told = trial.tensor("hyperparameters/objective")
    objective = str(told.value(told.steps()[0]).item())
pairs = None if labels is None else pair_classes(labels, predictions, objective)
if pairs is not None:
    confusion = count_pairs(*pairs)
    print(confusion)  # a row for each label, a column for each prediction
    figure, axes = pyplot.subplots()
    axes.imshow(confusion / confusion.sum(axis=1, keepdims=True).clip(1), cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="predicted", ylabel="label")"""

_EVALUATION = """\
if pairs is not None:
    rows = [(f"{name} average", scores) for name, scores in compute_average_scores(confusion).items()]
    rows += [(f"class {number}", scores) for number, scores in enumerate(compute_class_scores(confusion))]
    for name, scores in rows:
        print(f"{name:>20} precision {scores.precision:.4f} recall {scores.recall:.4f} F1 {scores.f1:.4f}")"""

_ROUNDS = """\
def read_rounds():
    \"\"\"Yield each round with its labels and predictions.\"\"\"
    known = labels
    for step in trial.tensor("predictions").steps():
        if trial.tensor("labels").has_step(step):
            known = trial.tensor("labels").value(step)
        yield step, known, trial.tensor("predictions").value(step)"""

_DIAGONAL = """\
if pairs is not None:
    found = [(step, pair_classes(*each, objective)) for step, *each in read_rounds()]
    found = [(step, compute_diagonal_shares(count_pairs(*each, len(confusion)))) for step, each in found if each]
    figure, axes = pyplot.subplots()
    axes.plot([step for step, _ in found], [shares for _, shares in found])
    axes.legend([f"class {number}" for number in range(len(confusion))])
    axes.set(xlabel="round", ylabel="right")"""

_ROC = """\
if pairs is not None and len(confusion) == 2 and predictions.size == len(pairs[0]):
    points, area = compute_roc(pairs[0], predictions.ravel())
    figure, axes = pyplot.subplots()
    axes.plot(*zip(*points), label=f"area {area:.4f}")
    axes.legend()
    axes.set(xlabel="false positive rate", ylabel="true positive rate")"""

_RESIDUALS = """\
is_regression = pairs is None and labels is not None and labels.size == predictions.size
if is_regression and not objective.startswith(("rank:", "survival:")):
    residuals = labels.ravel() - predictions.ravel()
    print(f"residuals: mean {residuals.mean():.4g}, root of the mean square {np.sqrt((residuals**2).mean()):.4g}")
    figure, axes = pyplot.subplots()
    axes.hist(residuals, bins=30)
    axes.set(xlabel="label - prediction", ylabel="samples")"""

_ERRORS = """\
if is_regression and not objective.startswith(("rank:", "survival:")):
    edges = choose_label_bins(labels.ravel())
    found = [(step, compute_errors_by_bin(*(each.ravel() for each in both), edges)) for step, *both in read_rounds()]
    figure, axes = pyplot.subplots()
    axes.plot([step for step, _ in found], [errors for _, errors in found])
    axes.legend([f"{low:.4g} to {high:.4g}" for low, high in zip(edges, edges[1:])])
    axes.set(xlabel="round", ylabel="|label - prediction|")"""

# Cells as (section of the report page that the code draws, heading, code). The section is None if the code draws none.
_CELLS = (
    (None, "## The run", _OPEN),
    ("loss", "", _METRICS),
    ("importance", ", by gain", _IMPORTANCE),
    (None, "## The newest predictions", _PREDICTIONS),
    ("labels", "", _LABELS),
    ("confusion", "", _CONFUSION),
    ("evaluation", "", _EVALUATION),
    (None, "## Predictions round by round", _ROUNDS),
    ("diagonal", "", _DIAGONAL),
    ("roc", "", _ROC),
    ("residuals", "", _RESIDUALS),
    ("errors", "", _ERRORS),
)


def render_notebook(title: str, path: str) -> str:
    """Return a notebook (nbformat 4.5, as JSON) whose code reads a run.

    Args:
        title: heading of the notebook.
        path: folder or `s3://` prefix of the run.
    """
    cells = [("markdown", f"# {title}")]
    for kind, heading, code in _CELLS:
        if kind is not None:
            section = SECTIONS[kind]
            heading = f"## {section.heading}{heading}\n\n{section.meaning}\n\nWhat to do: {section.what_to_do}"
        cells += [("markdown", heading), ("code", code.replace("{path!r}", repr(path)))]
    return build_notebook(cells)


def build_notebook(cells: Sequence[tuple[str, str]]) -> str:
    """Return a notebook as JSON; each cell is a pair of its kind, `markdown` or `code`, and its text."""
    notebook = {
        "cells": [_make_cell(kind, f"cell-{number}", text) for number, (kind, text) in enumerate(cells)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1)


def _make_cell(kind: str, name: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
