"""Overtraining: training continued after the loss has stopped improving."""

from typing import ClassVar

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, BuiltInRule
from smdebug.rules.measuring.losses import Patience, choose_losses, split_losses
from smdebug.rules.parameters import integer, number
from smdebug.rules.watched_quantity import Limit
from smdebug.rules.wording import count_noun


class Overtraining(BuiltInRule):
    """Fires where a loss has not improved for patience_train steps, or patience_validation for validation losses.

    A loss improves at a step if it is more than delta (in the loss's unit) below its best value before. The rule fires
    after that many consecutive saved steps of training or validation without an improvement. A loss with several
    elements or workers counts as their mean.

    The rule inspects the tensors of the collection losses, except XGBoost's metrics that are better when higher. A loss
    is a validation loss if its name begins with val_, validation, eval or test. It is a training loss if its name
    begins with train, or if a validation loss is saved at the same step. Otherwise the mode of the step decides (EVAL,
    or TRAIN and steps without a mode).

    Source: AWS's documentation of the rule Overtraining (patience_train 5, patience_validation 10, delta 0.01).
    """

    parameters = (
        integer("patience_train", 5, minimum=1),
        integer("patience_validation", 10, minimum=1),
        number("delta", 0.01, minimum=0.0),
    )
    inspects = "losses (collection losses)"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"losses": {"save_interval": "100"}}
    example: ClassVar = {"patience_train": "10", "patience_validation": "10", "delta": "0.001"}
    advice = (
        "Stop the training here, and keep the checkpoint of the best step.",
        "Lower the learning rate when the loss no longer falls: it may fall further.",
        "The loss of a single batch is noisy: raise patience_train. For small losses, lower delta.",
    )

    def _prepare(self) -> None:
        self._limits = {
            phase: Limit(f"steps without a better {phase} loss", self.values[f"patience_{phase}"], "at or above")
            for phase in ("train", "validation")
        }
        self._patience: dict[tuple[str, str], Patience] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a loss has not improved for too long at this global step."""
        training, validation = split_losses(choose_losses(self.tensors, step), self.base_trial.mode(step))
        # All are counted before one fires: a rule may be asked to go on.
        waited = [(name, phase, self._wait(name, phase, step)) for name, phase in _label(training, validation)]
        for name, phase, count in waited:
            self.watch_limit(self._limits[phase], step, count, name)
        for name, phase, count in waited:
            limit = self._limits[phase]
            if limit.is_passed_by(count):
                best, delta = self._patience[name, phase].best, self.values["delta"]
                text = (
                    f"for {count_noun(count, 'step')} the {phase} loss has not come below its best, {best:.6g}, by "
                    f"more than delta {delta:g}; patience_{phase} is {limit.threshold:g}"
                )
                return self.find(name, step, count, limit.threshold, text)
        return False

    def shortage(self) -> str:
        """Say that no loss was saved at more steps than the patience lasts."""
        most: dict[str, int] = {}
        for (_, phase), patience in self._patience.items():
            most[phase] = max(most.get(phase, 0), patience.seen)
        if any(count > self._limits[phase].threshold for phase, count in most.items()):
            return ""
        saved = ", ".join(
            f"the {phase} loss was saved at {count_noun(count, 'step')} (patience_{phase} "
            f"{self._limits[phase].threshold:g})"
            for phase, count in most.items()
        )
        return (
            f"no loss was saved at more steps than its patience: {saved}. Save losses more often, train for longer, or "
            "lower the patience."
        )

    def _wait(self, name: str, phase: str, step: int) -> int:
        self.inspected += 1
        patience = self._patience.setdefault((name, phase), Patience())
        return patience.add(self.tensors.read_mean(name, step), self.values["delta"])


def _label(training: list[str], validation: list[str]) -> list[tuple[str, str]]:
    return [(name, "train") for name in training] + [(name, "validation") for name in validation]
