"""Overfit: validation losses too far above training losses."""

import math
from typing import ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, LOSS_REGEX, BuiltInRule
from smdebug.rules.measuring.losses import read_phase_losses
from smdebug.rules.parameters import integer, number
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun


def compute_overfit_ratio(training: list[float], validation: list[float]) -> float:
    """(mean(validation) - mean(training)) / |mean(training)|; infinite above a mean training loss of 0.

    >>> compute_overfit_ratio([1.0, 3.0], [3.0])
    0.5
    """
    train, valid = math.fsum(training) / len(training), math.fsum(validation) / len(validation)
    if train == 0:
        return valid if valid == 0 or math.isnan(valid) else math.copysign(math.inf, valid)
    return (valid - train) / abs(train)


class Overfit(BuiltInRule):
    """Fires where (mean validation loss - mean training loss) / mean training loss is above ratio_threshold.

    The ratio, which has no unit, must be above the threshold at `patience` consecutive steps with a validation loss.
    The mean validation loss at a step is that of the current validation phase up to this step, and the mean training
    loss that of the training phase just before. A phase ends where steps of another mode follow, whether they are saved
    or not. Where both losses are saved at the same step, as by XGBoost (train-rmse and validation-rmse), each step is a
    phase. A validation phase without a saved training loss in the phase before is not judged; the verdict says how many
    there were.

    The losses are the tensors of the collection losses, except XGBoost's metrics that are better when higher. With
    tensor_regex, they are only those whose names match it; if none of the collection matches, they are all matching
    tensors that are single numbers, except weights, biases and gradients. Arrays are not averaged into a loss, except
    outputs of loss modules with one number per sample.

    A loss is a validation loss if its name begins with val_, validation, eval or test. It is a training loss if its
    name begins with train, or if a validation loss is saved at the same step. Otherwise the mode of the step decides
    (EVAL or TRAIN). Steps before start_step are not judged.

    Source: AWS's documentation of the rule Overfit (tensor_regex None, start_step 0, patience 1, ratio_threshold 0.1).
    The definition of a phase is this project's.
    """

    parameters = (
        LOSS_REGEX,
        integer("start_step", 0, minimum=0),
        integer("patience", 1, minimum=1),
        number("ratio_threshold", 0.1, minimum=0.0),
    )
    inspects = "losses of training and of validation, single numbers (collection losses, tensor_regex)"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"losses": {"train.save_interval": "100", "eval.save_interval": "10"}}
    example: ClassVar = {"patience": "3", "ratio_threshold": "0.2"}
    configure = (
        "PyTorch: hook.set_mode(modes.EVAL) before validation and modes.TRAIN after it. XGBoost: give an evaluation "
        "list with a training and a validation set."
    )
    advice = (
        "Stop here and keep the checkpoint with the lowest validation loss.",
        "Regularize: weight decay, dropout, a smaller model (XGBoost: max_depth, lambda), more or augmented data.",
        "Small losses make large ratios: raise ratio_threshold or patience, or skip early steps with start_step.",
    )

    def _prepare(self) -> None:
        self._limit = Limit("(validation - training) / training loss", self.values["ratio_threshold"])
        self._training: list[float] = []
        self._validation: list[float] = []
        self._last_of_mode: dict[ModeKeys | None, tuple[int, int]] = {}
        self._exceeded = 0
        self._incomparable = 0

    def invoke_at_step(self, step: int) -> bool:
        """Whether the validation loss has been too high for too long at this global step."""
        mode = self.base_trial.mode(step)
        if step < self.values["start_step"] or mode is ModeKeys.PREDICT:
            return False
        training, validation, names = read_phase_losses(self.tensors, step, mode, self.values["tensor_regex"])
        if not names:
            return False
        is_new_phase = self._begins_phase(step, mode)
        if self._validation and (is_new_phase or training is not None):
            # What was trained before it is older than the validation before this one.
            self._training, self._validation = [], []
        elif is_new_phase and validation is None:
            self._training = []
        if training is not None:
            self._training.append(training)
        if validation is None:
            return False
        if not self._training:
            # Losses of one phase alone are nothing that could be compared.
            self._incomparable += not self._validation
            self._validation.append(validation)
            return False
        self._validation.append(validation)
        return self._compare(step, names[-1])

    def shortage(self) -> str:
        """Say that losses could be compared at fewer steps than the patience lasts."""
        patience: int = self.values["patience"]
        if self.inspected >= patience:
            return ""
        return (
            f"the ratio has to be too high at patience ({patience}) steps in a row, and could be computed at "
            f"{self.inspected}. Save validation losses more often, train for longer, or lower patience."
        )

    def remark(self) -> str:
        """Say how many validation phases had no training loss to be compared with."""
        if not self._incomparable:
            return ""
        return (
            f"{count_noun(self._incomparable, 'validation phase')} could not be judged, because no training loss was "
            "saved in the training phase before: save losses of TRAIN in every training phase."
        )

    def _begins_phase(self, step: int, mode: ModeKeys | None) -> bool:
        """Whether steps of another mode lie between this step and the one before of its mode; of both nothing is said.

        Global steps count the steps of all modes, so that they run ahead of a mode's own where another mode was on.
        """
        mode_step = self.base_trial.mode_step(step)
        if mode_step is None:
            return False
        before = self._last_of_mode.get(mode)
        self._last_of_mode[mode] = step, mode_step
        return before is not None and step - before[0] != mode_step - before[1]

    def _compare(self, step: int, name: str) -> bool:
        self.inspected += 1
        ratio = compute_overfit_ratio(self._training, self._validation)
        self.watch_limit(self._limit, step, ratio, name)
        self._exceeded = self._exceeded + 1 if self._limit.is_passed_by(ratio) else 0
        if self._exceeded < self.values["patience"]:
            return False
        train, valid = (math.fsum(losses) / len(losses) for losses in (self._training, self._validation))
        in_a_row = f" at {self._exceeded} steps in a row" if self._exceeded > 1 else ""
        text = (
            f"the mean validation loss {valid:.6g} exceeds the mean training loss {train:.6g} by a ratio of "
            f"{ratio:.4g}, more than ratio_threshold {self._limit.threshold:g}{in_a_row}"
        )
        return self.find(name, step, ratio, self._limit.threshold, text)
