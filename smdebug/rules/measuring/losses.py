"""Classification of a step's losses into training and validation losses."""

import math
import re
from collections.abc import Collection, Iterable, Sequence

from smdebug.config.collection import CollectionKeys
from smdebug.mode_keys import ModeKeys
from smdebug.trials.step_tensors import StepTensors, WorkerTensor

# For runs whose collections file lists no losses: names of deep networks' losses, and of XGBoost's metrics.
_NAMES = (r"(?i)loss(?!\w*_input)", r"^[\w.]+-\w+(@[\d.-]+)?$")
# Metrics of XGBoost, and of SageMaker's container for it, for which higher is better; smdebug's regex of the collection
# losses includes some of them.
_RISING = re.compile(
    r"-(?:auc|aucpr|map|ndcg|pre|interval-regression-accuracy|(?:balanced_)?accuracy|f1(?:_binary|_macro)?|r2"
    r"|(?:precision|recall)(?:_macro|_micro)?)(?:@\d+)?-?$"
)
_TRAINING = re.compile(r"^train", re.IGNORECASE)
_VALIDATION = re.compile(r"^(?:scalar/)?(?:val_|valid|eval|test)", re.IGNORECASE)
# A loss module that returns one number per sample: MXNet's always do, PyTorch's with reduction="none".
_LOSS_OF_SAMPLES = re.compile(r"loss\d*_output_\d+$", re.IGNORECASE)
# Collections that may contain single numbers other than losses and metrics, such as a unit's bias or an importance.
_NO_LOSSES = (
    CollectionKeys.WEIGHTS,
    CollectionKeys.BIASES,
    CollectionKeys.GRADIENTS,
    CollectionKeys.OPTIMIZER_VARIABLES,
    CollectionKeys.HYPERPARAMETERS,
    CollectionKeys.FEATURE_IMPORTANCE,
    CollectionKeys.AVERAGE_SHAP,
    CollectionKeys.FULL_SHAP,
    CollectionKeys.TREES,
    CollectionKeys.PREDICTIONS,
    CollectionKeys.LABELS,
)
# The record of a single number is shorter than this plus its name, so that longer records need not be read.
_LONGEST_SCALAR_RECORD = 256


def is_better_higher(name: str) -> bool:
    """Return whether a metric of XGBoost, such as `validation-auc`, is better when it is higher, and is not a loss."""
    return _RISING.search(name) is not None


def choose_losses(tensors: StepTensors, step: int, patterns: Iterable[str] | None = None) -> list[str]:
    """Return the names of the losses at a global step, all of which are single numbers.

    Args:
        tensors: tensors of the run.
        step: global step.
        patterns: regexes that restrict the losses. If they match no loss, all single numbers that they match are used.
            None: the collection losses, or if it lists none, tensors that are named like a loss.
    """
    losses = choose_collected_losses(tensors, step) or [
        name for name in tensors.choose(step, (), _NAMES) if not is_better_higher(name)
    ]
    if patterns:
        found = choose_scalars(tensors, step, (), patterns)
        known = set(losses)
        return [name for name in found if name in known] or found
    return keep_scalars(tensors, step, losses)


def choose_collected_losses(tensors: StepTensors, step: int) -> list[str]:
    """Return the names at a global step that are in the collection losses and for which lower is better."""
    return [name for name in tensors.choose(step, (CollectionKeys.LOSSES,)) if not is_better_higher(name)]


def choose_scalars(
    tensors: StepTensors, step: int, collections: Iterable[str], patterns: Iterable[str] | None
) -> list[str]:
    """Return the names of single numbers at a global step that are in a collection, or match a regex.

    Weights, biases, gradients and the like are excluded from the matches of a regex, even if they have one element.
    """
    listed = tensors.choose(step, collections)
    found = tensors.choose(step, (), patterns) if patterns else []
    if found:
        losses = tensors.choose(step, (CollectionKeys.LOSSES,))
        others = set(tensors.choose(step, _NO_LOSSES)).difference(listed, losses)
        found = [name for name in found if name not in others]
    return keep_scalars(tensors, step, sorted({*listed, *found}))


def keep_scalars(tensors: StepTensors, step: int, names: Sequence[str]) -> list[str]:
    """Return those of some tensors that are one number on each worker at a global step.

    A loss is included, by its mean, if its module returns one number per sample, or if only its mean was saved.
    """
    return [
        name
        for name in names
        if _LOSS_OF_SAMPLES.search(name) or all(_is_scalar(tensors, place) for place in tensors.saved([name], step))
    ]


def _is_scalar(tensors: StepTensors, place: WorkerTensor) -> bool:
    location = place.saved.location
    if location is None:
        return ("mean", False) in place.saved.reductions and "loss" in place.name.lower()
    if location.length > _LONGEST_SCALAR_RECORD + len(place.name.encode()):
        return False
    value = tensors.read(place)
    return value is not None and value.size == 1 and value.dtype.kind in "fiub"


def drop_training_losses(names: Iterable[str]) -> list[str]:
    """Return the names without those that stand beside a val_loss: Keras saves an epoch's losses in an EVAL step.

    >>> drop_training_losses(["loss", "val_loss"]), drop_training_losses(["loss"])
    (['val_loss'], ['loss'])
    """
    training, validation, unnamed = _split_by_name(names)
    return [*training, *validation] if validation else [*training, *unnamed]


def split_losses(names: Iterable[str], mode: ModeKeys | None) -> tuple[list[str], list[str]]:
    """Split the losses of one step into (training, validation).

    XGBoost and Keras put the kind into the name (train-rmse, validation-rmse, val_loss); for others it is the step's
    mode. A loss beside a val_loss is a training loss, although Keras saves both in an EVAL step. PREDICT has neither.
    """
    training, validation, unnamed = _split_by_name(names)
    if validation or mode in (None, ModeKeys.TRAIN, ModeKeys.GLOBAL):
        training += unnamed
    elif mode is ModeKeys.EVAL:
        validation = unnamed
    return training, validation


def _split_by_name(names: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Split names into those of training losses, of validation losses, and those that do not tell."""
    training: list[str] = []
    validation: list[str] = []
    unnamed: list[str] = []
    for name in names:
        named = training if _TRAINING.search(name) else validation if _VALIDATION.search(name) else unnamed
        named.append(name)
    return training, validation, unnamed


def read_phase_losses(
    tensors: StepTensors, step: int, mode: ModeKeys | None, patterns: Collection[str] | None = None
) -> tuple[float | None, float | None, list[str]]:
    """Return the means of the training and the validation losses at a global step, None if there are none.

    Args:
        tensors: tensors of the run.
        step: global step.
        mode: the step's mode.
        patterns: as in `choose_losses`.

    Returns:
        The two means, and the names of the losses, validation last.
    """
    training, validation = split_losses(choose_losses(tensors, step, patterns), mode)
    means = [
        sum(tensors.read_mean(name, step) for name in names) / len(names) if names else None
        for names in (training, validation)
    ]
    return means[0], means[1], [*training, *validation]


class Patience:
    """Counts losses since the best one.

    A loss is a new best if it is below the best so far by more than delta; NaN is never a new best.

    Attributes:
        best: the best loss so far.
        waited: the number of losses since.
        seen: the number of all losses.

    >>> patience = Patience()
    >>> [patience.add(loss, 0.5) for loss in (3.0, 2.0, 1.6, 1.4)]
    [0, 0, 1, 0]
    """

    def __init__(self) -> None:
        self.best = math.inf
        self.waited = 0
        self.seen = 0

    def add(self, loss: float, delta: float) -> int:
        """Add the next loss, and return the number of consecutive losses that were not a new best."""
        self.seen += 1
        if loss < self.best - delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited
