"""The XGBoost report as a notebook: the same figures, each with the code that makes it, to go on from."""

import json
from typing import Any

_OPEN = """\
import numpy as np
from smdebug.rules.measuring.classes import count_pairs, pair_classes
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

_CONFUSION = """\
objective = ""
if trial.has_tensor("hyperparameters/objective"):
    told = trial.tensor("hyperparameters/objective")
    objective = str(told.value(told.steps()[0]).item())
pairs = None if labels is None else pair_classes(labels, predictions, objective)
if pairs is not None:
    confusion = count_pairs(*pairs)
    print(confusion)  # a row for each label, a column for each prediction
elif labels is not None and labels.size == predictions.size and not objective.startswith(("rank:", "survival:")):
    residuals = labels.ravel() - predictions.ravel()
    print(f"residuals: mean {residuals.mean():.4g}, root of the mean square {np.sqrt((residuals**2).mean()):.4g}")"""

_CELLS = (
    ("## The run", _OPEN),
    ("## Metrics over the rounds", _METRICS),
    ("## Importance of the features, by gain", _IMPORTANCE),
    ("## The newest predictions", _PREDICTIONS),
    ("## Classes taken for each other, or residuals", _CONFUSION),
)


def render_notebook(title: str, path: str) -> str:
    """Return a notebook (nbformat 4.5, as JSON) that reads a run by itself.

    Args:
        title: its heading.
        path: folder or `s3://` prefix of the run.
    """
    cells = [_make_cell("markdown", "title", f"# {title}")]
    for number, (heading, code) in enumerate(_CELLS):
        cells.append(_make_cell("markdown", f"heading-{number}", heading))
        cells.append(_make_cell("code", f"code-{number}", code.replace("{path!r}", repr(path))))
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1)


def _make_cell(kind: str, name: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}
