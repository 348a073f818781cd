"""A job from its channels to its model."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import xgboost
from xgboost.callback import EarlyStopping, EvaluationMonitor, TrainingCallback

from rules_images.training.xgboost.built_in_algorithm.channels import TRAIN, VALIDATION, read_channels
from rules_images.training.xgboost.built_in_algorithm.errors import JobError, summarise_xgboost_error
from rules_images.training.xgboost.built_in_algorithm.hyperparameters import JobHyperparameters, parse_hyperparameters
from rules_images.training.xgboost.built_in_algorithm.metrics import MAXIMISED, make_metric

if TYPE_CHECKING:
    from pathlib import Path

MODEL_NAME = "xgboost-model"
# XGBoost's metrics that are better when higher; it guesses by the beginning of a name and takes mape for map.
_MAXIMISED = frozenset({"auc", "aucpr", "map", "ndcg", "pre"})


def train(base: Path, given: dict[str, str]) -> None:
    """Train as the hyperparameters say and write the model.

    Raises:
        JobError: hyperparameters or data do not allow it.
    """
    _check_hosts(base)
    asked = parse_hyperparameters(given)
    for note in asked.notes:
        _say(f"Note: {note}.")
    matrices = read_channels(base, csv_weights=asked.csv_weights)
    for name, matrix in matrices.items():
        _say(f"Channel {name}: {matrix.num_row()} rows of {matrix.num_col()} features.")
    callbacks: list[TrainingCallback] = [
        EvaluationMonitor(logger=lambda text: _say(text.rstrip("\n").replace("\t", "#011")))
    ]
    if asked.early_stopping_rounds is not None:
        callbacks.append(_make_early_stopping(asked, matrices))
    if asked.save_model_on_termination:
        callbacks.append(_StopWhenAsked())
    try:
        booster = xgboost.train(
            asked.booster,
            matrices[TRAIN],
            asked.rounds,
            evals=[(matrix, name) for name, matrix in matrices.items()],
            callbacks=callbacks,
            custom_metric=make_metric(asked.metrics, asked.booster) if asked.metrics else None,
            verbose_eval=False,
        )
    except (xgboost.core.XGBoostError, ValueError) as error:
        raise JobError(f"XGBoost refuses this job: {summarise_xgboost_error(error)}") from error
    folder = base / "model"
    folder.mkdir(parents=True, exist_ok=True)
    # The name has no extension that would say the format, so it is said here.
    (folder / MODEL_NAME).write_bytes(bytes(booster.save_raw("ubj")))
    _say(f"The model of {booster.num_boosted_rounds()} rounds is in {folder / MODEL_NAME}.")


def _check_hosts(base: Path) -> None:
    path = base / "input" / "config" / "resourceconfig.json"
    hosts = json.loads(path.read_text(encoding="utf-8")).get("hosts", []) if path.is_file() else []
    if len(hosts) > 1:
        # Each would train on its own and write a model, and the last one would be taken for that of all.
        raise JobError(f"The job has {len(hosts)} instances, and this algorithm trains on one: use InstanceCount 1.")


def _make_early_stopping(asked: JobHyperparameters, matrices: dict[str, xgboost.DMatrix]) -> EarlyStopping:
    if VALIDATION not in matrices:
        raise JobError(f"early_stopping_rounds needs a channel named {VALIDATION}.")
    metric = asked.last_metric
    return EarlyStopping(
        rounds=asked.early_stopping_rounds or 1,
        data_name=VALIDATION,
        metric_name=metric,
        maximize=None if metric is None else metric.partition("@")[0] in _MAXIMISED | MAXIMISED,
        # A linear booster has no rounds to go back to.
        save_best=asked.booster.get("booster") != "gblinear",
    )


class _StopWhenAsked(TrainingCallback):
    """Ends training after the round in which SIGTERM came, so that the model of the rounds so far is saved."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = False
        signal.signal(signal.SIGTERM, self._note)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        return self._asked

    def _note(self, *_: object) -> None:
        self._asked = True


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a training container's log is its standard output
