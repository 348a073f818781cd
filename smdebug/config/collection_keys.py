"""Names of the collections that hooks know, and which of them are treated in a special way."""


class CollectionKeys:
    """Collection names, as they stand in collections files and in CollectionConfigurations."""

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

# Their tensors are numbers, so TensorBoard shows them as scalars.
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
# Always saved raw, whatever reduction config is asked for.
NON_REDUCTION_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
NON_HISTOGRAM_COLLECTIONS = SCALAR_COLLECTIONS | SUMMARIES_COLLECTIONS
# What exists only while a model is being trained.
TRAIN_ONLY_COLLECTIONS = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})
