"""Cross-validation: a model for each fold, metrics, and held-out predictions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import xgboost

from rules_images.training.xgboost.built_in_algorithm.channels import TRAIN, VALIDATION
from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from rules_images.training.xgboost.built_in_algorithm.metrics import find_threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from rules_images.training.xgboost.built_in_algorithm.hyperparameters import JobHyperparameters

History = dict[str, dict[str, list[float]]]
Evaluations = list[tuple[xgboost.DMatrix, str]]
PREDICTIONS_NAME = "predictions.csv"


def cross_validate(
    asked: JobHyperparameters,
    matrices: Mapping[str, xgboost.DMatrix],
    train_model: Callable[[xgboost.DMatrix, Evaluations, History], xgboost.Booster],
    say: Callable[[str], None],
    is_stopped: Callable[[], bool],
) -> tuple[list[xgboost.Booster], NDArray[np.float64]]:
    """Train a model for each fold of the rows of all channels, with the requested number of repetitions.

    Metrics are computed on the original channels. Without a validation channel, the held-out rows are used for it.

    Args:
        asked: the job's hyperparameters.
        matrices: the channels by name.
        train_model: function that trains on the first argument, prints the metrics of the second and records them in
            the third.
        say: function that writes a line to the job's log.
        is_stopped: function that returns whether the job is to end. Then the remaining folds are skipped.

    Returns:
        The models, and a table with, for each row, its label and its prediction when it was held out. For classes the
        prediction is the probability, and a third column has the class that was predicted most often.

    Raises:
        JobError: there are fewer rows than folds, or the rows belong to groups.
    """
    rows = _join_channels(matrices)
    count, folds = rows.num_row(), asked.folds or 0
    if count < folds:
        raise JobError(f"_kfold is {folds}, and the channels have {count} rows: give more rows, or fewer folds.")
    say(f"Run {asked.repeats}-round of {folds}-fold cross validation with {count} rows")
    models: list[xgboost.Booster] = []
    histories: list[History] = []
    predicted: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    for learned, held_out in _split(asked, rows):
        say(f"Train cross validation fold {len(models) % folds + 1}")
        learned_rows, held_out_rows = rows.slice(learned), rows.slice(held_out)
        watched = [(matrices.get(TRAIN, learned_rows), TRAIN), (matrices.get(VALIDATION, held_out_rows), VALIDATION)]
        history: History = {}
        model = train_model(learned_rows, watched, history)
        models.append(model)
        histories.append(history)
        for row, values in zip(held_out, _predict(asked, model, held_out_rows), strict=True):
            predicted[row].append(values)
        if len(models) % folds == 0:
            say(f"The metrics of round {len(models) // folds} cross validation")
            say(_describe(asked.rounds, histories[-folds:]))
        if is_stopped():
            say(f"Stopped after {len(models)} of {folds * asked.repeats} folds.")
            break
    if asked.repeats > 1 and len(models) == folds * asked.repeats:
        say(f"The overall metrics of {asked.repeats}-round cross validation")
        say(_describe(asked.rounds, histories))
    return models, _summarise(rows.get_label(), predicted, with_classes=_has_classes(asked))


def write_predictions(folder: Path, table: NDArray[np.float64]) -> Path:
    """Write the predictions next to the job's other output data, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PREDICTIONS_NAME
    np.savetxt(path, table, delimiter=",", fmt="%f")
    return path


def _join_channels(matrices: Mapping[str, xgboost.DMatrix]) -> xgboost.DMatrix:
    """Return all rows in one matrix. A row without a weight gets 1."""
    if any(matrix.get_uint_info("group_ptr").size for matrix in matrices.values()):
        raise JobError("_kfold does not go with rows that have a qid: folds would cut their groups.")
    if len(matrices) == 1:
        return matrices[TRAIN]
    from scipy.sparse import vstack

    weights = [matrix.get_weight() for matrix in matrices.values()]
    found = zip(weights, matrices.values(), strict=True)
    ones = [weight if weight.size else np.ones(matrix.num_row(), np.float32) for weight, matrix in found]
    return xgboost.DMatrix(
        vstack([matrix.get_data() for matrix in matrices.values()]),
        label=np.concatenate([matrix.get_label() for matrix in matrices.values()]),
        weight=np.concatenate(ones) if any(weight.size for weight in weights) else None,
    )


def _has_classes(asked: JobHyperparameters) -> bool:
    return str(asked.booster.get("objective", "")).startswith(("binary:", "multi:"))


def _split(asked: JobHyperparameters, rows: xgboost.DMatrix) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the training rows and held-out rows of each fold. Classes are spread evenly if they have enough rows."""
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    labels = rows.get_label()
    is_stratified = _has_classes(asked) and min(Counter(labels.tolist()).values()) >= (asked.folds or 0)
    splitter = RepeatedStratifiedKFold if is_stratified else RepeatedKFold
    # As in XGBoost, the default seed is 0.
    seed = int(asked.booster.get("seed", 0)) % 2**32
    split = splitter(n_splits=asked.folds, n_repeats=asked.repeats, random_state=seed)
    found: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]] = split.split(np.zeros((len(labels), 1)), labels)
    return found


def _predict(asked: JobHyperparameters, model: xgboost.Booster, rows: xgboost.DMatrix) -> Sequence[tuple[float, float]]:
    """Return the number or probability of each row, and the class that follows from it."""
    if asked.booster.get("objective") == "multi:softmax":
        # This objective predicts only the class, so compute the probabilities from the margins.
        from scipy.special import softmax

        values = softmax(model.predict(rows, output_margin=True), axis=1)
    else:
        values = model.predict(rows)
    if values.ndim == 2:
        return list(zip(values.max(axis=1).tolist(), values.argmax(axis=1).tolist(), strict=True))
    classes = (values > find_threshold(asked.booster)).astype(int)
    return list(zip(values.tolist(), classes.tolist(), strict=True))


def _summarise(
    labels: NDArray[np.float32], predicted: Sequence[Sequence[tuple[float, float]]], *, with_classes: bool
) -> NDArray[np.float64]:
    table = []
    for label, values in zip(labels.tolist(), predicted, strict=True):
        if not values:
            continue
        row = [label, float(np.mean([value for value, _ in values]))]
        if with_classes:
            # If several classes are equally frequent, the lowest is chosen.
            row.append(Counter(sorted(number for _, number in values)).most_common(1)[0][0])
        table.append(row)
    return np.array(table, np.float64)


def _describe(rounds: int, histories: Sequence[History]) -> str:
    """Return the means of the folds' final metrics, formatted like the line of a round."""
    parts = [f"[{rounds}]"]
    for metric in histories[0][TRAIN]:
        for data in (TRAIN, VALIDATION):
            mean = np.mean([history[data][metric][-1] for history in histories])
            parts.append(f"{data}-{metric}:{mean:.5f}")
    return "#011".join(parts)
