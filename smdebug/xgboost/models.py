"""Models of a callback: one booster, or the boosters of a cross-validation."""

import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import xgboost
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.xgboost.trees import get_newest_trees

T = TypeVar("T")

# Time and source line before what XGBoost's library says.
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")

# What a model answers to nothing: the last of its SHAP values, and what the original calls that.
BIAS = "bias"
IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")


class Model(Protocol):
    """What the hook asks about at a saved step."""

    @property
    def feature_names(self) -> list[str]:
        """Names of the features; f0, f1, ... where the data had none."""
        ...

    def get_labels(self) -> NDArray[Any] | None:
        """float32 labels of the validation data, one row a sample; None without such data."""
        ...

    def predict(self) -> NDArray[Any] | None:
        """float32 predictions for the validation data; None without such data."""
        ...

    def get_importances(self, kind: str) -> dict[str, Any]:
        """Share of each used feature in all importance of that type."""
        ...

    def get_contributions(self) -> NDArray[Any] | None:
        """SHAP values, float32 (rows[, classes], features + 1), the bias last; None without training data."""
        ...

    def get_newest_trees(self) -> dict[str, Any]:
        """Columns of the trees of the newest round."""
        ...


class SingleModel:
    """A booster in training: predicts and has labels for the validation data, and explains the training data."""

    def __init__(
        self, booster: xgboost.Booster, train_data: xgboost.DMatrix | None, validation_data: xgboost.DMatrix | None
    ) -> None:
        """Take the booster as it is after a round, and the data that there is."""
        self._booster = booster
        self._train_data = train_data
        self._validation_data = validation_data

    @property
    def feature_names(self) -> list[str]:
        """See Model."""
        return list(self._booster.feature_names or (f"f{at}" for at in range(self._booster.num_features())))

    def get_labels(self) -> NDArray[Any] | None:
        """See Model."""
        return None if self._validation_data is None else self._validation_data.get_label()

    def predict(self) -> NDArray[Any] | None:
        """See Model."""
        data = self._validation_data
        return None if data is None else ask(lambda: self._booster.predict(data))

    def get_importances(self, kind: str) -> dict[str, Any]:
        """See Model."""
        return normalise(ask(lambda: self._booster.get_score(importance_type=kind)))

    def get_contributions(self) -> NDArray[Any] | None:
        """See Model."""
        data = self._train_data
        return None if data is None else ask(lambda: self._booster.predict(data, pred_contribs=True))

    def get_newest_trees(self) -> dict[str, Any]:
        """See Model."""
        return ask(lambda: get_newest_trees(self._booster, self.feature_names))


class CrossValidation:
    """The boosters of `xgboost.cv`, each asked about the part of the data that it did not learn from."""

    def __init__(self, folds: list[Any]) -> None:
        """Take the folds of what callbacks get as model."""
        self._folds = folds
        self._models = [SingleModel(fold.bst, fold.dtest, fold.dtest) for fold in folds]

    @property
    def feature_names(self) -> list[str]:
        """See Model."""
        return self._models[0].feature_names

    def get_labels(self) -> NDArray[Any] | None:
        """Labels of all held-out parts, one fold after the other."""
        return _join(model.get_labels() for model in self._models)

    def predict(self) -> NDArray[Any] | None:
        """Predictions for all held-out parts, in the order of the labels."""
        return _join(model.predict() for model in self._models)

    def get_importances(self, kind: str) -> dict[str, Any]:
        """Mean over the folds; a fold that does not use a feature counts as 0."""
        totals: dict[str, Any] = {}
        for model in self._models:
            for feature, share in model.get_importances(kind).items():
                totals[feature] = totals.get(feature, 0.0) + share
        return {feature: total / len(self._models) for feature, total in totals.items()}

    def get_contributions(self) -> NDArray[Any] | None:
        """SHAP values of all held-out parts, in the order of the labels."""
        return _join(model.get_contributions() for model in self._models)

    def get_newest_trees(self) -> dict[str, Any]:
        """Refuse: a cross-validation has as many models as folds.

        Raises:
            SMDebugValueError: always.
        """
        raise SMDebugValueError(f"a cross-validation has {len(self._folds)} models, and no trees of its own")


def make_model(
    model: Any, train_data: xgboost.DMatrix | None, validation_data: xgboost.DMatrix | None
) -> SingleModel | CrossValidation:
    """Return the view of what XGBoost hands to a callback."""
    if isinstance(model, xgboost.Booster):
        return SingleModel(model, train_data, validation_data)
    return CrossValidation(model.cvfolds)


def name_contributions(features: list[str]) -> list[str]:
    """Names of SHAP values' columns: the features', then the bias; a feature that is called so, too, gets a number."""
    own_name, number = BIAS, 0
    while own_name in features:
        number += 1
        own_name = f"{BIAS}_{number}"
    return [*(own_name if feature == BIAS else feature for feature in features), BIAS]


def normalise(scores: dict[str, Any]) -> dict[str, Any]:
    """Divide importances by the sum of all; a feature of a linear model of several classes has one for each."""
    arrays = {feature: np.asarray(score, np.float64) for feature, score in scores.items()}
    total = float(sum(array.sum() for array in arrays.values()))
    return {feature: array / total if total else array for feature, array in arrays.items()}


def ask(question: Callable[[], T]) -> T:
    """Return XGBoost's answer; of its error, which holds a stack trace, only what it says.

    Raises:
        SMDebugError: XGBoost cannot answer.
    """
    try:
        return question()
    except (xgboost.core.XGBoostError, ValueError) as error:
        said = _PLACE.sub("", str(error).strip().partition("\n")[0])
        raise SMDebugError(said or type(error).__name__) from error


def _join(parts: Any) -> NDArray[Any] | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None
