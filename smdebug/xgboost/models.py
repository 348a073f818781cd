"""Models of a callback: one booster, or the boosters of a cross-validation."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import xgboost
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.xgboost.trees import get_newest_trees

T = TypeVar("T")

# Time and source line before a message of XGBoost's library.
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")

# Upstream's name of the last SHAP value: the prediction of a model without any feature.
BIAS = "bias"
IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")


class SingleModel:
    """A booster in training, with predictions for validation data and SHAP values of training data."""

    def __init__(
        self, booster: xgboost.Booster, train_data: xgboost.DMatrix | None, validation_data: xgboost.DMatrix | None
    ) -> None:
        """Initialize with the booster after a round, and the data."""
        self._booster = booster
        self._train_data = train_data
        self._validation_data = validation_data

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; f0, f1, ... if the data has none."""
        return list(self._booster.feature_names or (f"f{at}" for at in range(self._booster.num_features())))

    def get_labels(self) -> NDArray[Any] | None:
        """Return the float32 labels of the validation data, one row per sample; None without such data."""
        return None if self._validation_data is None else self._validation_data.get_label()

    def predict(self) -> NDArray[Any] | None:
        """Return the float32 predictions for the validation data; None without such data."""
        data = self._validation_data
        return None if data is None else ask(lambda: self._booster.predict(data))

    def get_importances(self, kind: str) -> dict[str, Any]:
        """Return the share of each used feature in the total importance of a type."""
        return normalise(ask(lambda: self._booster.get_score(importance_type=kind)))

    def get_contributions(self) -> NDArray[Any] | None:
        """Return float32 SHAP values of shape (rows[, classes], features + 1); None without training data.

        The last column is the bias.
        """
        data = self._train_data
        return None if data is None else ask(lambda: self._booster.predict(data, pred_contribs=True))

    def get_newest_trees(self) -> dict[str, Any]:
        """Return the columns of the trees of the newest round."""
        return ask(lambda: get_newest_trees(self._booster, self.feature_names))


class CrossValidation:
    """The boosters of `xgboost.cv`, each evaluated on its held-out part of the data."""

    def __init__(self, folds: list[Any]) -> None:
        """Initialize with the folds of the model that callbacks are passed."""
        self._models = [SingleModel(fold.bst, fold.dtest, fold.dtest) for fold in folds]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, which are the same in all folds."""
        return self._models[0].feature_names

    def get_labels(self) -> NDArray[Any] | None:
        """Return the labels of all held-out parts, one fold after the other."""
        return _join(model.get_labels() for model in self._models)

    def predict(self) -> NDArray[Any] | None:
        """Return the predictions for all held-out parts, in the order of the labels."""
        return _join(model.predict() for model in self._models)

    def get_importances(self, kind: str) -> dict[str, Any]:
        """Return the mean importances over the folds; a fold that does not use a feature counts as 0."""
        totals: dict[str, Any] = {}
        for model in self._models:
            for feature, share in model.get_importances(kind).items():
                totals[feature] = totals.get(feature, 0.0) + share
        return {feature: total / len(self._models) for feature, total in totals.items()}

    def get_contributions(self) -> NDArray[Any] | None:
        """Return the SHAP values of all held-out parts, in the order of the labels."""
        return _join(model.get_contributions() for model in self._models)

    def get_newest_trees(self) -> dict[str, Any]:
        """Refuse, because a cross-validation has one model per fold.

        Raises:
            SMDebugValueError: always.
        """
        raise SMDebugValueError(f"a cross-validation has {len(self._models)} models, and no trees of its own")


Model = SingleModel | CrossValidation


def make_model(model: Any, train_data: xgboost.DMatrix | None, validation_data: xgboost.DMatrix | None) -> Model:
    """Wrap the model that XGBoost passes to a callback."""
    if isinstance(model, xgboost.Booster):
        return SingleModel(model, train_data, validation_data)
    return CrossValidation(model.cvfolds)


def name_contributions(features: list[str]) -> list[str]:
    """Return the names of the SHAP columns: the features, then the bias; a feature named `bias` gets a number."""
    own_name, number = BIAS, 0
    while own_name in features:
        number += 1
        own_name = f"{BIAS}_{number}"
    return [*(own_name if feature == BIAS else feature for feature in features), BIAS]


def normalise(scores: dict[str, Any]) -> dict[str, Any]:
    """Divide importances by their sum; in a multi-class linear model, a feature has one for each class."""
    arrays = {feature: np.asarray(score, np.float64) for feature, score in scores.items()}
    total = float(sum(array.sum() for array in arrays.values()))
    return {feature: array / total if total else array for feature, array in arrays.items()}


def ask(question: Callable[[], T]) -> T:
    """Call XGBoost; an error is reduced to its message, without XGBoost's stack trace.

    Raises:
        SMDebugError: XGBoost raises an error.
    """
    try:
        return question()
    except (xgboost.core.XGBoostError, ValueError) as error:
        said = _PLACE.sub("", str(error).strip().partition("\n")[0])
        raise SMDebugError(said or type(error).__name__) from error


def _join(parts: Any) -> NDArray[Any] | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None
