"""Training of the XGBoost algorithm, from channels to the saved model."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost
from xgboost import collective
from xgboost.callback import EarlyStopping, TrainingCallback

from rules_images.training.xgboost.built_in_algorithm.channels import TRAIN, VALIDATION, list_replicated, read_channels
from rules_images.training.xgboost.built_in_algorithm.errors import (
    JobError,
    NoDataError,
    summarise_connection_error,
    summarise_xgboost_error,
)
from rules_images.training.xgboost.built_in_algorithm.folds import cross_validate, write_predictions
from rules_images.training.xgboost.built_in_algorithm.hosts import Hosts, choose_port, join, meet, read_hosts
from rules_images.training.xgboost.built_in_algorithm.hyperparameters import JobHyperparameters, parse_hyperparameters
from rules_images.training.xgboost.built_in_algorithm.metrics import MAXIMISED, make_metric

if TYPE_CHECKING:
    from pathlib import Path

    from rules_images.training.xgboost.built_in_algorithm.folds import Evaluations, History

MODEL_NAME = "xgboost-model"
# XGBoost's metrics for which higher is better. XGBoost itself guesses from the start of the name and confuses mape with
# map.
_MAXIMISED = frozenset({"auc", "aucpr", "interval-regression-accuracy", "map", "ndcg", "pre"})


def train(base: Path, given: dict[str, str]) -> None:
    """Train with the given hyperparameters on all hosts of the job, and write the model.

    Raises:
        JobError: the hyperparameters or the data are not valid.
    """
    asked = parse_hyperparameters(given)
    for note in asked.notes:
        _say(f"Note: {note}.")
    hosts = read_hosts(base)
    training = _Training(base, asked)
    if len(hosts.names) == 1:
        training.run(read_channels(base, csv_weights=asked.csv_weights))
        return
    _say(f"Distributed node training with {len(hosts.names)} hosts: {', '.join(hosts.names)}")
    try:
        _train_on_hosts(training, hosts)
    except xgboost.core.XGBoostError as error:
        text = f"Host {hosts.current} lost the other hosts: {summarise_connection_error(error)}"
        raise JobError(text) from error


def _train_on_hosts(training: _Training, hosts: Hosts) -> None:
    base, csv_weights = training.base, training.asked.csv_weights
    for name in list_replicated(base):
        _say(
            f"Note: each of the {len(hosts.names)} hosts has all data of channel {name}. With the distribution type "
            "ShardedByS3Key each has a part."
        )
    try:
        matrices = read_channels(base, csv_weights=csv_weights)
    except NoDataError as error:
        matrices = {}
        _say(f"{error} Host {hosts.current} takes no part in the training.")
    port = choose_port()
    hosts, columns = meet(hosts, port, matrices[TRAIN].num_col() if matrices else 0)
    if not matrices:
        return
    if matrices[TRAIN].num_col() < max(columns):
        # libsvm files do not contain the number of features.
        matrices = read_channels(base, csv_weights=csv_weights, columns=max(columns))
    with join(hosts, port + 1) if len(hosts.names) > 1 else nullcontext():
        training.run(matrices, writes=hosts.is_first)


class _Training:
    def __init__(self, base: Path, asked: JobHyperparameters) -> None:
        self.base = base
        self.asked = asked
        self._stop: _StopWhenAsked | None = None

    def run(self, matrices: dict[str, xgboost.DMatrix], *, writes: bool = True) -> None:
        """Train one model, or one for each fold. The first host writes the models."""
        self._stop = _StopWhenAsked() if self.asked.save_model_on_termination else None
        for name, matrix in matrices.items():
            _say(f"Channel {name}: {matrix.num_row()} rows of {matrix.num_col()} features.")
        if self.asked.folds is None:
            evals = [(matrix, name) for name, matrix in matrices.items()]
            found = {MODEL_NAME: self._train_model(matrices[TRAIN], evals)}
        else:
            models, predicted = cross_validate(self.asked, matrices, self._train_model, _say, self._is_stopped)
            path = write_predictions(self.base / "output" / "data", predicted)
            _say(f"What was predicted of the rows held out is in {path}.")
            found = {f"{MODEL_NAME}-{fold}": model for fold, model in enumerate(models)}
        folder = self.base / "model"
        folder.mkdir(parents=True, exist_ok=True)
        for name, booster in found.items() if writes else ():
            # The file name has no extension that determines the format, so it is given here.
            (folder / name).write_bytes(bytes(booster.save_raw("ubj")))
            _say(f"The model of {booster.num_boosted_rounds()} rounds is in {folder / name}.")

    def _train_model(
        self, rows: xgboost.DMatrix, evals: Evaluations, history: History | None = None
    ) -> xgboost.Booster:
        asked = self.asked
        callbacks: list[TrainingCallback] = [_ShowMetrics()]
        if asked.early_stopping_rounds is not None:
            callbacks.append(_make_early_stopping(asked, {name for _, name in evals}))
        if self._stop is not None:
            callbacks.append(self._stop)
        try:
            return xgboost.train(
                asked.booster,
                rows,
                asked.rounds,
                evals=evals,
                evals_result=history,
                callbacks=callbacks,
                custom_metric=make_metric(asked.metrics, asked.booster) if asked.metrics else None,
                verbose_eval=False,
            )
        except (xgboost.core.XGBoostError, ValueError) as error:
            raise JobError(f"XGBoost refuses this job: {summarise_xgboost_error(error)}") from error

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_asked


def _make_early_stopping(asked: JobHyperparameters, watched: set[str]) -> EarlyStopping:
    if VALIDATION not in watched:
        raise JobError(f"early_stopping_rounds needs a channel named {VALIDATION}.")
    metric = asked.last_metric
    return EarlyStopping(
        rounds=asked.early_stopping_rounds or 1,
        data_name=VALIDATION,
        metric_name=metric,
        maximize=None if metric is None else is_maximised(metric),
        # A linear booster cannot go back to an earlier round.
        save_best=asked.booster.get("booster") != "gblinear",
    )


def is_maximised(metric: str) -> bool:
    """Return whether higher is better for a metric, such as `ndcg@5-` or `f1_macro`."""
    return metric.partition("@")[0].rstrip("-") in _MAXIMISED | MAXIMISED


class _ShowMetrics(TrainingCallback):
    """Prints the metrics of each round, as the log of AWS's container has them. The first of the hosts prints."""

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        if evals_log and not collective.get_rank():
            shown = (
                f"#011{name}-{metric}:{_format_score(values[-1])}"
                for name, metrics in evals_log.items()
                for metric, values in metrics.items()
            )
            _say(f"[{epoch}]{''.join(shown)}")
        return False


def _format_score(score: float | tuple[float, float]) -> str:
    """Format a metric; in cross-validation its mean and standard deviation over the folds."""
    return "+".join(f"{each:.5f}" for each in (score if isinstance(score, tuple) else (score,)))


class _StopWhenAsked(TrainingCallback):
    """Ends training after the round in which SIGTERM arrives, so that the model trained so far is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = False
        self._is_signalled = False
        signal.signal(signal.SIGTERM, self._note)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        asked = np.array([int(self._is_signalled)])
        # SIGTERM may reach the hosts in different rounds, but they have to end in the same one.
        self.is_asked = bool(collective.allreduce(asked, collective.Op.MAX)[0])
        return self.is_asked

    def _note(self, *_: object) -> None:
        self._is_signalled = True


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a training container's log is its standard output
