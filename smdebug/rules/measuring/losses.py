"""Classification of a step's losses into training and validation losses."""

import math
import re
from collections.abc import Collection, Iterable, Sequence

from smdebug.config.collection import CollectionKeys
from smdebug.mode_keys import ModeKeys
from smdebug.trials.step_tensors import StepTensors, WorkerTensor

# For runs whose collections file lists no losses: a deep network's, and XGBoost's metrics.
_NAMES = (r"(?i)loss(?!\w*_input)", r"^[\w.]+-\w+(@[\d.-]+)?$")
# XGBoost's metrics that are better when higher, some of which smdebug's regex of the collection losses takes in.
_RISING = re.compile(r"-(?:auc|aucpr|map|ndcg|pre|interval-regression-accuracy)(?:@\d+)?-?$")
_TRAINING = re.compile(r"^train", re.IGNORECASE)
_VALIDATION = re.compile(r"^(?:scalar/)?(?:val_|valid|eval|test)", re.IGNORECASE)
# A loss module that leaves one number a sample: MXNet's always do, PyTorch's with reduction="none".
_LOSS_OF_SAMPLES = re.compile(r"loss\d*_output_\d+$", re.IGNORECASE)
# Collections of what may be a single number and is neither a loss nor a metric: the bias of one unit, an importance.
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
# The record of a single number is shorter than this and its name together, so that longer ones need not be read.
_LONGEST_SCALAR_RECORD = 256


def is_better_higher(name: str) -> bool:
    """Whether a metric of XGBoost, such as `validation-auc`, is better when higher, and so is no loss."""
    return _RISING.search(name) is not None


def choose_losses(tensors: StepTensors, step: int, patterns: Iterable[str] | None = None) -> list[str]:
    """Names of the losses at a global step, single numbers all of them.

    Args:
        tensors: of the run.
        step: global step.
        patterns: regexes that restrict the losses; where none of what they find is a loss, it is what they find. None:
            the collection losses, or where it lists none, what is named like a loss.
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
    """Names at a global step that are in the collection losses and are better when lower."""
    return [name for name in tensors.choose(step, (CollectionKeys.LOSSES,)) if not is_better_higher(name)]


def choose_scalars(
    tensors: StepTensors, step: int, collections: Iterable[str], patterns: Iterable[str] | None
) -> list[str]:
    """Names of single numbers at a global step that are in a collection, or in which a regex is found.

    What a regex finds of weights, biases, gradients and the like is left out, however few elements it has.
    """
    listed = tensors.choose(step, collections)
    found = tensors.choose(step, (), patterns) if patterns else []
    if found:
        losses = tensors.choose(step, (CollectionKeys.LOSSES,))
        others = set(tensors.choose(step, _NO_LOSSES)).difference(listed, losses)
        found = [name for name in found if name not in others]
    return keep_scalars(tensors, step, sorted({*listed, *found}))


def keep_scalars(tensors: StepTensors, step: int, names: Sequence[str]) -> list[str]:
    """Return those of some tensors at a global step that are one number on each worker.

    A loss counts with its mean where its module leaves one number a sample, or where only its mean was saved.
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


def split_losses(names: Iterable[str], mode: ModeKeys | None) -> tuple[list[str], list[str]]:
    """Losses of one step as (training, validation).

    XGBoost and Keras say it in the name (train-rmse, validation-rmse, val_loss); elsewhere the step's mode tells. A
    loss beside a val_loss is that of training, though Keras saves both in an EVAL step. PREDICT has neither.
    """
    training: list[str] = []
    validation: list[str] = []
    unnamed: list[str] = []
    for name in names:
        named = training if _TRAINING.search(name) else validation if _VALIDATION.search(name) else unnamed
        named.append(name)
    if validation or mode in (None, ModeKeys.TRAIN, ModeKeys.GLOBAL):
        training += unnamed
    elif mode is ModeKeys.EVAL:
        validation = unnamed
    return training, validation


def read_phase_losses(
    tensors: StepTensors, step: int, mode: ModeKeys | None, patterns: Collection[str] | None = None
) -> tuple[float | None, float | None, list[str]]:
    """Means of the training losses and of the validation losses at a global step, None where there are none.

    Args:
        tensors: of the run.
        step: global step.
        mode: its mode.
        patterns: as in `choose_losses`.

    Returns:
        The two means, and the names read, validation last.
    """
    training, validation = split_losses(choose_losses(tensors, step, patterns), mode)
    means = [
        sum(tensors.read_mean(name, step) for name in names) / len(names) if names else None
        for names in (training, validation)
    ]
    return means[0], means[1], [*training, *validation]


class Patience:
    """Counts losses since the best one.

    A loss is a new best where it is below the best so far by more than delta; NaN is never one.

    >>> patience = Patience()
    >>> [patience.add(loss, 0.5) for loss in (3.0, 2.0, 1.6, 1.4)]
    [0, 0, 1, 0]
    """

    def __init__(self) -> None:
        self.best = math.inf
        self.waited = 0

    def add(self, loss: float, delta: float) -> int:
        """Take the next loss; returns how many losses in a row were no new best."""
        if loss < self.best - delta:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited
