"""Hyperparameters of SageMaker's XGBoost algorithm: parsing and validation."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from rules_images.training.xgboost.built_in_algorithm.metrics import NAMES


@dataclass(frozen=True, slots=True)
class JobHyperparameters:
    """The hyperparameters of a job.

    Attributes:
        rounds: number of boosting rounds.
        booster: XGBoost's parameters, by XGBoost's names.
        metrics: the metrics of eval_metric that XGBoost does not have.
        last_metric: the metric that early stopping uses; None for the metric of the objective.
        early_stopping_rounds: rounds without a better validation metric after which training ends, None for never.
        csv_weights: whether the second column of the training channel's CSV weighs its rows.
        save_model_on_termination: whether the model is saved when the job is stopped.
        folds: how many parts cross validation cuts the rows into, None for one model of all rows.
        repeats: how often it does so.
        notes: what is said about names and values of older versions.
    """

    rounds: int
    booster: dict[str, Any]
    metrics: tuple[str, ...]
    last_metric: str | None
    early_stopping_rounds: int | None
    csv_weights: bool
    save_model_on_termination: bool
    folds: int | None
    repeats: int
    notes: tuple[str, ...]


def parse_hyperparameters(given: Mapping[str, str]) -> JobHyperparameters:
    """Parse the hyperparameters of a job.

    Raises:
        JobError: a required one is missing, a name is unknown, or a value is out of range. The message lists all of
            them.
    """
    given = {name: text.strip() for name, text in given.items() if not name.startswith("sagemaker_")}
    given, notes = _translate_deprecated(given)
    wrong, unknown = [], []
    if "num_round" not in given:
        wrong.append("num_round is missing: give the number of boosting rounds")
    values: dict[str, Any] = {}
    for name, text in given.items():
        read = _READERS.get(name)
        if read is None:
            unknown.append(name)
            continue
        try:
            values[name] = read(text)
        except ValueError as error:
            wrong.append(f"{name} is {text!r}, expected {error}")
    wrong += _find_contradictions(given, values)
    # The known names come last and only once, because a long FailureReason is truncated.
    wrong += [f"{name} is not a hyperparameter of this algorithm" for name in unknown]
    if unknown:
        wrong.append(f"there are {', '.join(sorted(name for name in _READERS if not name.startswith('_')))}")
    if wrong:
        raise JobError(f"Hyperparameters: {'; '.join(wrong)}.")
    asked: list[str] = values.pop("eval_metric", [])
    # The objective metric of a tuning job, such as `validation:rmse`, has to be evaluated.
    tuned = str(values.pop("_tuning_objective_metric", "")).partition(":")[2]
    if tuned:
        asked = [*(name for name in asked if name != tuned), tuned]
    own = [name for name in asked if name not in NAMES]
    if own:
        values["eval_metric"] = own
    elif asked:
        # Otherwise XGBoost adds the metric of the objective to the requested ones.
        values["disable_default_eval_metric"] = True
    deprecated = [name for name in values if name in _DEPRECATED]
    notes += [f"{name} is deprecated, and has no effect in this version of XGBoost" for name in deprecated]
    return JobHyperparameters(
        rounds=values.pop("num_round"),
        metrics=tuple(name for name in asked if name in NAMES),
        last_metric=asked[-1] if asked else None,
        early_stopping_rounds=values.pop("early_stopping_rounds", None),
        csv_weights=values.pop("csv_weights", False),
        save_model_on_termination=values.pop("save_model_on_termination", False),
        folds=values.pop("_kfold", None),
        repeats=values.pop("_num_cv_round", 1),
        booster={name: value for name, value in values.items() if name not in _WITHOUT_EFFECT},
        notes=tuple(notes),
    )


def _translate_deprecated(given: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Translate hyperparameters of older versions to this version, and return a note about each."""
    values, notes = dict(given), []
    silent = values.pop("silent", None)
    if silent is not None:
        if silent not in ("0", "1"):
            # The reader of this hyperparameter reports the valid values.
            return given, []
        notes.append(f"silent is deprecated: verbosity {1 - int(silent)} is used in its place")
        values.setdefault("verbosity", str(1 - int(silent)))
    for name, renamed in _RENAMED.items():
        if values.get(name) in renamed:
            now = renamed[values[name]]
            notes.append(f"{name} {values[name]} is deprecated: {now} is used in its place")
            values[name] = now
    return values, notes


def _find_contradictions(given: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    objective, classes = values.get("objective"), given.get("num_class")
    has_classes = isinstance(objective, str) and objective.startswith("multi:")
    if has_classes and classes is None:
        return [f"objective {objective} needs num_class"]
    if classes is not None and not has_classes:
        return ["num_class goes with the objectives multi:softmax and multi:softprob only"]
    return []


def _within(parse: Callable[[str], float], low: float, high: float, wanted: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = parse(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(wanted)
        return value

    return read


def _number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    return _within(float, low, high, f"a number from {low:g} to {high:g}")


def _whole(low: int, high: float = math.inf) -> Callable[[str], float]:
    most = "" if high == math.inf else f" and at most {high}"
    return _within(int, low, high, f"a whole number of at least {low}{most}")


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return read


def _flag(text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false", "1", "0"):
        raise ValueError("true or false")
    return word in ("true", "1")


def _names(text: str) -> list[str]:
    # The SDK passes a list as JSON, the console as names separated by commas.
    try:
        content = json.loads(text)
    except ValueError:
        content = text.split(",")
    found = [str(name).strip() for name in (content if isinstance(content, list) else [content])]
    if not found or not all(found):
        raise ValueError("names with commas between them")
    return found


# Names and ranges are those of AWS's documentation of the algorithm's hyperparameters. Ranges that XGBoost itself
# checks with a clear message are not repeated.
_READERS: dict[str, Callable[[str], Any]] = {
    "_kfold": _whole(2),
    "_num_cv_round": _whole(1),
    "_tuning_objective_metric": str,
    "num_round": _whole(1),
    "csv_weights": _flag,
    "early_stopping_rounds": _whole(1),
    "save_model_on_termination": _flag,
    "aft_loss_distribution": _one_of("normal", "logistic", "extreme"),
    "aft_loss_distribution_scale": _number(0),
    "alpha": _number(0),
    "base_score": _number(),
    "booster": _one_of("gbtree", "gblinear", "dart"),
    "colsample_bylevel": _number(0, 1),
    "colsample_bynode": _number(0, 1),
    "colsample_bytree": _number(0, 1),
    "deterministic_histogram": _flag,
    "dsplit": _one_of("row", "col"),
    "eta": _number(0, 1),
    "eval_metric": _names,
    "gamma": _number(0),
    "grow_policy": _one_of("depthwise", "lossguide"),
    "huber_slope": _number(0),
    "interaction_constraints": str,
    "lambda": _number(0),
    "lambda_bias": _number(0),
    "max_bin": _whole(2),
    "max_delta_step": _number(0),
    "max_depth": _whole(0),
    "max_leaves": _whole(0),
    "min_child_weight": _number(0),
    "monotone_constraints": str,
    "normalize_type": _one_of("tree", "forest"),
    "nthread": _whole(1),
    "num_class": _whole(2),
    "num_parallel_tree": _whole(1),
    "objective": str,
    "one_drop": _whole(0, 1),
    "predictor": _one_of("auto", "cpu_predictor", "gpu_predictor"),
    "process_type": _one_of("default", "update"),
    "quantile_alpha": _number(0, 1),
    "rate_drop": _number(0, 1),
    "refresh_leaf": _whole(0, 1),
    "sample_type": _one_of("uniform", "weighted"),
    "sampling_method": _one_of("uniform", "gradient_based"),
    "scale_pos_weight": _number(0),
    "seed": _whole(-(2**31)),
    "silent": _whole(0, 1),
    "single_precision_histogram": _flag,
    "sketch_eps": _number(0, 1),
    "skip_drop": _number(0, 1),
    "subsample": _number(0, 1),
    "tree_method": _one_of("auto", "exact", "approx", "hist"),
    "tweedie_variance_power": _number(1, 2),
    "updater": str,
    "use_dask_gpu_training": _one_of("false"),
    "verbosity": _whole(0, 3),
}
# Names of older versions of XGBoost.
_DEPRECATED = frozenset(
    {"deterministic_histogram", "dsplit", "predictor", "single_precision_histogram", "sketch_eps"},
)
# use_dask_gpu_training matters only for GPUs.
_WITHOUT_EFFECT = _DEPRECATED | {"use_dask_gpu_training"}
# Values of older versions and their present names. GPU values map to CPU ones, because there is no GPU here.
_RENAMED = {
    "objective": {"reg:linear": "reg:squarederror", "gpu:reg:linear": "reg:squarederror"},
    "tree_method": {"gpu_hist": "hist", "gpu_exact": "exact"},
}
_RENAMED["objective"] |= {f"gpu:{name}": name for name in ("binary:logistic", "binary:logitraw", "reg:logistic")}
