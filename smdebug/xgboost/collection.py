"""Collections of an XGBoost run."""

from collections.abc import Mapping
from typing import ClassVar

from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import FrameworkCollectionManager

__all__ = ["CollectionKeys", "CollectionManager"]


class CollectionManager(FrameworkCollectionManager):
    """Collections of an XGBoost run."""

    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.HYPERPARAMETERS: ("^hyperparameters/.*$",),
        CollectionKeys.METRICS: ("^[a-zA-z]+-[a-zA-z0-9]+$",),
        CollectionKeys.LOSSES: ("^[a-zA-z]+-.+(?<!(auc|map))$",),
        CollectionKeys.PREDICTIONS: ("^predictions$",),
        CollectionKeys.LABELS: ("^labels$",),
        CollectionKeys.FEATURE_IMPORTANCE: ("^feature_importance/.*",),
        CollectionKeys.AVERAGE_SHAP: ("^average_shap/.*[^/bias]$",),
        CollectionKeys.FULL_SHAP: ("^full_shap/.*[^/bias]$",),
        CollectionKeys.TREES: ("^trees/.*",),
    }
