"""Collections: named groups of tensors with one configuration each."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError


class CollectionKeys:
    """Collection names, as used in collections files and in CollectionConfigurations."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


DEFAULT_PYTORCH_COLLECTIONS = frozenset(
    {
        CollectionKeys.ALL,
        CollectionKeys.DEFAULT,
        CollectionKeys.WEIGHTS,
        CollectionKeys.BIASES,
        CollectionKeys.GRADIENTS,
        CollectionKeys.LOSSES,
    }
)
DEFAULT_MXNET_COLLECTIONS = DEFAULT_PYTORCH_COLLECTIONS
DEFAULT_TF_COLLECTIONS = DEFAULT_PYTORCH_COLLECTIONS | {
    CollectionKeys.METRICS,
    CollectionKeys.INPUTS,
    CollectionKeys.OUTPUTS,
    CollectionKeys.LAYERS,
    CollectionKeys.SM_METRICS,
    CollectionKeys.OPTIMIZER_VARIABLES,
}
DEFAULT_XGBOOST_COLLECTIONS = frozenset(
    {
        CollectionKeys.ALL,
        CollectionKeys.DEFAULT,
        CollectionKeys.HYPERPARAMETERS,
        CollectionKeys.PREDICTIONS,
        CollectionKeys.LABELS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.FULL_SHAP,
        CollectionKeys.TREES,
    }
)

# All of CollectionKeys; each framework has some of them from the start.
BUILT_IN_COLLECTIONS = frozenset(value for name, value in vars(CollectionKeys).items() if not name.startswith("_"))

# Tensors of these collections are numbers, so TensorBoard shows them as scalars.
SCALAR_COLLECTIONS = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.SM_METRICS,
    }
)
SM_METRIC_COLLECTIONS = frozenset({CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS})
SUMMARIES_COLLECTIONS = frozenset({CollectionKeys.TENSORFLOW_SUMMARIES})
# Always saved raw, regardless of the reduction config.
NON_REDUCTION_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
NON_HISTOGRAM_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
# Exist only while a model is being trained.
TRAIN_ONLY_COLLECTIONS = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})


class Collection:
    """A set of tensors, selected by name or by regex, with the config of when and how they are saved."""

    def __init__(
        self,
        name: str,
        include_regex: str | Iterable[str] | None = None,
        tensor_names: Iterable[str] | None = None,
        reduction_config: ReductionConfig | Mapping[str, Any] | None = None,
        save_config: object = None,
        save_histogram: bool = True,
    ) -> None:
        """Create a collection; configs that are not given are None until `fill_in` takes them from the hook.

        Raises:
            SMDebugTypeError: a regex is not a string, tensor_names is a string, or a config has another type.
            SMDebugValueError: the name is empty, a regex is invalid, or a config refuses a value.
        """
        if not isinstance(name, str) or not name:
            raise SMDebugValueError(f"A collection needs a name, not {name!r}.")
        self.name = name
        self.include_regex: list[str] = []
        if include_regex is not None:
            self.include(include_regex)
        if isinstance(tensor_names, str):
            raise SMDebugTypeError(f"tensor_names takes a list or a set of names, not {tensor_names!r}.")
        self._tensor_names: set[str] = set(tensor_names or ())
        self._reduction_config: ReductionConfig | None = None
        self._save_config: SaveConfig | None = None
        self.reduction_config = reduction_config
        self.save_config = save_config
        self._save_histogram = save_histogram

    @property
    def save_histogram(self) -> bool:
        """Whether histograms of the tensors are written for TensorBoard; never for scalars."""
        return self._save_histogram and self.name not in NON_HISTOGRAM_COLLECTIONS

    @save_histogram.setter
    def save_histogram(self, value: bool) -> None:
        self._save_histogram = value

    def include(self, t: str | Iterable[Any]) -> None:
        """Add a regex, given as a string, or several, in lists with any nesting.

        Raises:
            SMDebugTypeError: a pattern is not a string.
            SMDebugValueError: a pattern is not a valid regex.
        """
        if isinstance(t, (list, tuple)):
            for pattern in t:
                self.include(pattern)
            return
        if not isinstance(t, str):
            raise SMDebugTypeError(f"A collection includes regexes given as text, not {t!r}.")
        try:
            re.compile(t)
        except re.error as error:
            raise SMDebugValueError(
                f"Collection {self.name}: include_regex {t!r} is not a regex ({error}). In a hook config "
                "commas separate regexes, so none can hold one."
            ) from error
        self.include_regex.append(t)

    @property
    def tensor_names(self) -> set[str]:
        """The names of tensors seen so far in this collection."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str] | None) -> None:
        if names is not None and not isinstance(names, (list, set, frozenset)):
            raise SMDebugTypeError(f"tensor_names takes a list or a set of names, not {names!r}.")
        self._tensor_names = set(names or ())

    def add_tensor_name(self, tname: str | Iterable[str]) -> None:
        """Add one name or several names."""
        if isinstance(tname, str):
            self._tensor_names.add(tname)
        else:
            self._tensor_names.update(tname)

    def remove_tensor_name(self, tname: str) -> None:
        """Remove a name if it is listed."""
        self._tensor_names.discard(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Return whether the name is listed; regexes are not considered."""
        return tname in self._tensor_names

    def matches(self, tensor_name: str) -> bool:
        """Return whether the tensor belongs to this collection: by name, or by a regex that matches anywhere in it."""
        return tensor_name in self._tensor_names or any(re.search(regex, tensor_name) for regex in self.include_regex)

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """What is saved of each tensor; None means the hook's config."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, config: object) -> None:
        self._reduction_config = ReductionConfig.parse(config)

    @property
    def save_config(self) -> SaveConfig | None:
        """Which steps are saved; None means the hook's config."""
        return self._save_config

    @save_config.setter
    def save_config(self, config: object) -> None:
        self._save_config = None if config is None else SaveConfig.parse(config)

    def selects_nothing(self) -> bool:
        """Return whether the collection has neither regexes nor names."""
        return not self.include_regex and not self._tensor_names

    def fill_in(self, save_config: SaveConfig, reduction_config: ReductionConfig) -> None:
        """Use the hook's configs if the collection has none; collections of scalars are always saved raw."""
        self.save_config = (self._save_config or SaveConfig({})).filled_from(save_config)
        if self.name in NON_REDUCTION_COLLECTIONS:
            self.reduction_config = ReductionConfig(save_raw_tensor=True)
        elif self._reduction_config is None:
            self.reduction_config = reduction_config

    def to_json_dict(self) -> dict[str, Any]:
        """Return the dictionary that is written to collections files."""
        return {
            "name": self.name,
            "include_regex": self.include_regex,
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": self._reduction_config.to_json_dict() if self._reduction_config else None,
            "save_config": self._save_config.to_json_dict() if self._save_config else None,
            "save_histogram": self.save_histogram,
        }

    def to_json(self) -> str:
        """Return `to_json_dict` as JSON text."""
        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> "Collection":
        """Create a collection from the dictionary of `to_json_dict`; unknown keys are ignored.

        Raises:
            KeyError: a mode name is unknown.
            SMDebugValueError: this is not a dict, the name is missing, or a reduction is unknown.
        """
        if not isinstance(params, Mapping):
            raise SMDebugValueError(f"Collection.from_dict takes a dict, not {params!r}.")
        save_config = params.get("save_config")
        return cls(
            params.get("name", ""),
            params.get("include_regex"),
            params.get("tensor_names"),
            params.get("reduction_config"),
            None if save_config is None else SaveConfig.from_dict(save_config),
            params.get("save_histogram", True),
        )

    @classmethod
    def from_json(cls, json_str: str) -> "Collection":
        """Create a collection from the text of `to_json`."""
        return cls.from_dict(json.loads(json_str))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and self.to_json_dict() == other.to_json_dict()

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Collection {self.name}: {len(self._tensor_names)} names, regexes {self.include_regex}>"
