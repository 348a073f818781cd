"""Which losses of a step are those of training, and which those of validation."""

import math
import re
from collections.abc import Iterable

from smdebug.config.collection import CollectionKeys
from smdebug.mode_keys import ModeKeys
from smdebug.trials.step_tensors import StepTensors

# For runs whose collections file lists no losses: a deep network's, and XGBoost's metrics.
_NAMES = (r"(?i)loss(?!\w*_input)", r"^[\w.]+-\w+(@[\d.-]+)?$")
# XGBoost's metrics that are better when higher, some of which smdebug's regex of the collection losses takes in.
_RISING = re.compile(r"-(?:auc|aucpr|map|ndcg|pre|interval-regression-accuracy)(?:@\d+)?-?$")
_TRAINING = re.compile(r"^train", re.IGNORECASE)
_VALIDATION = re.compile(r"^(?:scalar/)?(?:val_|valid|eval|test)", re.IGNORECASE)


def choose_losses(tensors: StepTensors, step: int, patterns: Iterable[str] | None = None) -> list[str]:
    """Names of the losses at a global step: those of the regexes, else the collection losses, else by their names."""
    if patterns:
        return tensors.choose(step, (), patterns)
    return choose_collected_losses(tensors, step) or [
        name for name in tensors.choose(step, (), _NAMES) if not _RISING.search(name)
    ]


def choose_collected_losses(tensors: StepTensors, step: int) -> list[str]:
    """Names at a global step that are in the collection losses and are better when lower."""
    return [name for name in tensors.choose(step, (CollectionKeys.LOSSES,)) if not _RISING.search(name)]


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
    tensors: StepTensors, step: int, mode: ModeKeys | None, patterns: Iterable[str] | None = None
) -> tuple[float | None, float | None, list[str]]:
    """Means of the training losses and of the validation losses at a global step, None where there are none.

    Args:
        tensors: of the run.
        step: global step.
        mode: its mode.
        patterns: regexes of the losses' names.

    Args:
        tensors: of the run.
        step: global step.
        mode: its mode.
        patterns: regexes of the losses' names.

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
