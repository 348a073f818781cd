"""The XGBoost hook: a callback that saves tensors after boosting rounds."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import xgboost
from xgboost import collective
from xgboost.callback import TrainingCallback

from smdebug.barrier import guarded
from smdebug.capture.framework import check_version
from smdebug.capture.hook import BaseHook
from smdebug.capture.saving_plan import StepPlan
from smdebug.capture.singleton import get_current_hook
from smdebug.config.collection import Collection, CollectionKeys
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.job_warnings import HOOK_PARAMETER_IGNORED, TENSORS_DROPPED, warn_user
from smdebug.logger import get_logger
from smdebug.writing.run_writer import Worker
from smdebug.xgboost.collection import CollectionManager
from smdebug.xgboost.data import get_matrix
from smdebug.xgboost.hyperparameters import get_storable
from smdebug.xgboost.metrics import get_newest_metrics
from smdebug.xgboost.models import BIAS, IMPORTANCE_TYPES, Model, make_model, name_contributions
from smdebug.xgboost.trees import COLUMNS

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Collection", "CollectionKeys", "CollectionManager", "Hook"]

# The first version with xgboost.collective, which tells the workers.
_OLDEST = (1, 7)


class Hook(BaseHook, TrainingCallback):
    """A callback that saves metrics, predictions, importances, SHAP values and trees of boosters.

    A step is a boosting round, counted from 0; the rounds of a second training follow those of the first. The step has
    ended, and its files are visible, when the callback returns. A step that saves nothing does not query the model.
    """

    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = CollectionManager.default_collections
    always_saved: ClassVar[tuple[str, ...]] = (CollectionKeys.METRICS,)
    manager_class = CollectionManager
    default_save_config: ClassVar[dict[str, Any]] = {"save_interval": 10}

    def __init__(
        self,
        out_dir: str | os.PathLike[str] | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        reduction_config: Any = None,
        save_config: Any = None,
        include_regex: str | list[str] | None = None,
        include_collections: Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        hyperparameters: Mapping[str, Any] | None = None,
        train_data: xgboost.DMatrix | tuple[str, str] | None = None,
        validation_data: xgboost.DMatrix | tuple[str, str] | None = None,
    ) -> None:
        """Initialize as BaseHook, except that every 10th round is saved by default and nothing is reduced.

        Args:
            out_dir: see BaseHook.
            export_tensorboard: see BaseHook.
            tensorboard_dir: see BaseHook.
            dry_run: see BaseHook.
            reduction_config: ignored, because all values are saved raw.
            save_config: see BaseHook.
            include_regex: see BaseHook.
            include_collections: see BaseHook.
            save_all: see BaseHook.
            include_workers: see BaseHook.
            hyperparameters: values for the collection hyperparameters.
            train_data: data for SHAP values, as a DMatrix or (path, content type).
            validation_data: data for predictions and labels, in the same forms.

        Raises:
            SMDebugRuntimeError: out_dir is missing, or holds a run that has ended.
            SMDebugTypeError: a config or data has another type.
            SMDebugValueError: a config contains unknown values, or data cannot be read.
        """
        check_version("XGBoost", xgboost.__version__, first=_OLDEST, missing="what it shows in another way")
        self.hyperparameters = hyperparameters
        self.train_data = get_matrix(train_data, "train_data")
        self.validation_data = get_matrix(validation_data, "validation_data")
        # Whether a step with a plan wants any tensor of a group.
        self._wanted: WeakKeyDictionary[StepPlan, dict[str, bool]] = WeakKeyDictionary()
        self._known_metrics: set[str] = set()
        self._said: set[str] = set()
        if reduction_config is not None:
            self._say_not_reduced()
        super().__init__(
            out_dir=out_dir,
            export_tensorboard=export_tensorboard,
            tensorboard_dir=tensorboard_dir,
            dry_run=dry_run,
            save_config=SaveConfig(**self.default_save_config) if save_config is None else save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            include_workers=include_workers,
        )

    @classmethod
    def hook_from_config(cls, json_config_path: str | os.PathLike[str] | None = None) -> "Self":
        """Create a hook from a debughookconfig.json; an older name of `create_from_json_file`."""
        return cls.create_from_json_file(json_config_path)

    # Called by XGBoost.

    def before_training(self, model: Any) -> Any:
        """Return the model unchanged, and reset the cache: features may differ from those of the previous training."""
        self._wanted.clear()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        """Count the round, and save what is due; always return False, so that training continues."""
        self._save_round(model, evals_log)
        return False

    @guarded("a boosting round")
    def _save_round(self, model: Any, evals_log: Any) -> None:
        plan = self.recorder.begin()
        if plan is not None:
            view = make_model(model, self.train_data, self.validation_data)
            self._save_hyperparameters()
            self._save_metrics(evals_log)
            self._save_predictions(view, plan)
            self._save_labels(view, plan)
            self._save_importances(view, plan)
            self._save_trees(view, plan)
            self._save_contributions(view, plan)
        self.recorder.end_for_good()

    # The parts of a step.

    @guarded("hyperparameters")
    def _save_hyperparameters(self) -> None:
        for name, value in get_storable(self.hyperparameters or {}):
            self.recorder.save(f"hyperparameters/{name}", value)

    @guarded("metrics")
    def _save_metrics(self, evals_log: Any) -> None:
        for metric in get_newest_metrics(evals_log):
            if metric.name not in self._known_metrics:
                self._known_metrics.add(metric.name)
                # The regexes do not match names like `validation_0-rmse` and `test-ndcg@5`.
                self._add_name(CollectionKeys.METRICS, metric.name)
                if metric.is_loss:
                    self._add_name(CollectionKeys.LOSSES, metric.name)
            self.recorder.save(metric.name, metric.value)

    @guarded("predictions")
    def _save_predictions(self, model: Model, plan: StepPlan) -> None:
        self._save_of_validation(plan, "predictions", model.predict)

    @guarded("labels")
    def _save_labels(self, model: Model, plan: StepPlan) -> None:
        self._save_of_validation(plan, "labels", model.get_labels)

    def _save_importances(self, model: Model, plan: StepPlan) -> None:
        for kind in IMPORTANCE_TYPES:
            self._save_importance(model, plan, kind)

    @guarded("feature importances of some type")
    def _save_importance(self, model: Model, plan: StepPlan, kind: str) -> None:
        prefix = f"feature_importance/{kind}/"
        if self._wants_features(plan, prefix, lambda: model.feature_names):
            for feature, share in model.get_importances(kind).items():
                self.recorder.save(f"{prefix}{feature}", share.reshape(-1))

    @guarded("trees")
    def _save_trees(self, model: Model, plan: StepPlan) -> None:
        if self._wants(plan, "trees", lambda: [f"trees/{column}" for column in COLUMNS]):
            for column, values in model.get_newest_trees().items():
                self.recorder.save(f"trees/{column}", values)

    @guarded("SHAP values")
    def _save_contributions(self, model: Model, plan: StepPlan) -> None:
        full, average = "full_shap/", "average_shap/"
        wants_full = self._wants_features(plan, full, lambda: name_contributions(model.feature_names)[:-1])
        wants_average = self._wants_features(plan, average, lambda: name_contributions(model.feature_names)[:-1])
        if not wants_full and not wants_average:
            return
        values = model.get_contributions()
        if values is None:
            self._say_missing("SHAP values", "train_data")
            return
        features = name_contributions(model.feature_names)
        self._say_other_names(model.feature_names, features)
        if wants_full:
            for feature in features:
                self.recorder.save(f"{full}{feature}", values)
        if wants_average:
            # The mean over the rows, and over the classes if there are several.
            means = values.mean(axis=tuple(range(values.ndim - 1)), dtype=np.float64).astype(values.dtype)
            for at, feature in enumerate(features):
                self.recorder.save(f"{average}{feature}", means[at : at + 1])

    def _save_of_validation(
        self, plan: StepPlan, name: str, get_values: Callable[[], np.ndarray[Any, Any] | None]
    ) -> None:
        if not self._wants(plan, name, lambda: [name]):
            return
        values = get_values()
        if values is None:
            self._say_missing(name, "validation_data")
        else:
            self.recorder.save(name, values)

    def _wants(self, plan: StepPlan, group: str, get_names: Callable[[], Iterable[str]]) -> bool:
        """Return whether a step with this plan wants any tensor of a group; its names are asked for once a plan."""
        known = self._wanted.setdefault(plan, {})
        if group not in known:
            known[group] = any(collection.matches(name) for name in get_names() for collection in plan.due)
        return known[group]

    def _wants_features(self, plan: StepPlan, prefix: str, get_features: Callable[[], list[str]]) -> bool:
        def get_names() -> list[str]:
            names = [f"{prefix}{feature}" for feature in get_features()]
            collection = prefix.partition("/")[0]
            if any(due.name == collection for due in plan.due):
                # The regexes exclude features whose name ends in one of `abis/`, but only the bias should be excluded.
                for name in names:
                    self._add_name(collection, name)
            return [*names, f"{prefix}{BIAS}"]

        return self._wants(plan, prefix, get_names)

    def _add_name(self, collection_name: str, name: str) -> None:
        collection = self.collection_manager.get(collection_name)
        if not collection.matches(name):
            collection.add_tensor_name(name)

    def _say_other_names(self, features: list[str], names: list[str]) -> None:
        for feature, name in zip(features, names, strict=False):
            if feature != name and name not in self._said:
                self._said.add(name)
                get_logger().warning(
                    "SHAP values of the feature %s are saved as %s: the model has a %s of its own.", feature, name, BIAS
                )

    def _say_missing(self, lost: str, needed: str) -> None:
        if lost not in self._said:
            self._said.add(lost)
            warn_user(TENSORS_DROPPED, "Not saved: %s. The hook has no %s; training goes on.", lost, needed)

    def _say_not_reduced(self) -> None:
        if "reductions" not in self._said:
            self._said.add("reductions")
            warn_user(HOOK_PARAMETER_IGNORED, "reduction_config is not used: of XGBoost everything is saved as it is.")

    # Implementation of Framework.

    def get_worker(self) -> Worker:
        """Return the worker that this process is in the training."""
        if not collective.is_distributed():
            return Worker.of_rank(0, 1)
        return Worker.of_rank(collective.get_rank(), collective.get_world_size())

    def prepare_collection(self, collection: Collection) -> None:
        """Warn that reductions are not supported."""
        config = collection.reduction_config
        if config is not None and not (config.save_raw_tensor and not config.operations() and not config.save_shape):
            self._say_not_reduced()
            collection.reduction_config = ReductionConfig(save_raw_tensor=True)

    # scikit-learn copies and pickles estimators with their callbacks. The hook itself is not copied to other processes.

    def __copy__(self) -> "Self":
        return self

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _restore, ()


def _restore() -> TrainingCallback:
    """Return what a pickled hook loads as: the hook of the loading process, or a callback that does nothing."""
    hook = get_current_hook()
    return hook if isinstance(hook, Hook) else TrainingCallback()
