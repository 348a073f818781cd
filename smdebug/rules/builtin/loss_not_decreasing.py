"""LossNotDecreasing: a loss that does not fall."""

import math
from typing import ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, USE_LOSSES, BuiltInRule
from smdebug.rules.measuring.losses import choose_collected_losses, choose_scalars, keep_scalars
from smdebug.rules.parameters import choice, integer, number
from smdebug.rules.watched_quantity import Limit

_LOSSES = "losses"
# Where no mode is given, the first of these in which the loss was saved.
_MODES = (ModeKeys.EVAL, ModeKeys.TRAIN, ModeKeys.GLOBAL)


def compute_fall_percent(before: float, now: float) -> float:
    """By how many percent of |before| the loss fell; negative if it rose. NaN if a loss is not a number.

    From a loss of 0 no percentage can be taken: the fall is then 0, or infinite with the sign of the change.

    >>> compute_fall_percent(4.0, 3.0), compute_fall_percent(0.0, 1.0)
    (25.0, -inf)
    """
    if before == 0:
        return now if now == 0 or math.isnan(now) else math.copysign(math.inf, -now)
    return (before - now) / abs(before) * 100.0


def describe_problem(before: float, now: float, diff_percent: float, increase_threshold_percent: float) -> str | None:
    """Return what is wrong with how a loss went from `before` to `now`; None if nothing is.

    >>> describe_problem(4.0, 3.0, 10, 5), describe_problem(4.0, 4.1, 10, 5)
    (None, None)
    >>> describe_problem(4.0, 5.0, 10, 5)
    'it rose by 25 %, more than the 5 % of increase_threshold_percent'
    """
    fall = compute_fall_percent(before, now)
    if math.isnan(fall):
        return "no decrease can be computed, because one of the two is not a number"
    if fall < 0:
        if -fall <= increase_threshold_percent:
            return None
        return f"it rose by {-fall:.4g} %, more than the {increase_threshold_percent:g} % of increase_threshold_percent"
    if fall < diff_percent:
        change = f"it fell by {fall:.4g} %" if fall else "it did not change"
        return f"{change}; it has to fall by at least {diff_percent:g} % (diff_percent)"
    return None


class LossNotDecreasing(BuiltInRule):
    """Fires where a loss fell by less than diff_percent, or rose by more than increase_threshold_percent.

    A loss is compared with its value at the latest saved step that is at least num_steps back, counted in steps of the
    mode: fall = (before - now) / |before| * 100. The next comparison is at least num_steps later. A loss that falls or
    stays the same has to fall by at least diff_percent. A loss that rises may rise by up to increase_threshold_percent;
    with 0, the rule fires at every rise.

    The rule inspects the tensors of the collection losses (unless use_losses_collection is False), except XGBoost's
    metrics that are better when higher; those of collection_names; and those whose names match tensor_regex, except
    weights, biases and gradients. Of these it judges single numbers, as their mean over the workers, and outputs of
    loss modules with one number per sample, as the mean of these numbers.

    If no mode is given, a loss is judged by its EVAL steps if it was saved in EVAL so far, else by its TRAIN steps,
    else by all its steps.

    Source: AWS's documentation of the rule LossNotDecreasing (collection_names None, tensor_regex None,
    use_losses_collection True, num_steps 10, diff_percent 0.1, increase_threshold_percent 5, mode EVAL, TRAIN, GLOBAL
    in this order).
    """

    parameters = (
        *TENSOR_CHOICE,
        USE_LOSSES,
        integer("num_steps", 10, minimum=1),
        number("diff_percent", 0.1, maximum=100.0),
        number("increase_threshold_percent", 5.0, minimum=0.0),
        choice("mode", None, [mode.name for mode in _MODES]),
    )
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {_LOSSES: {"save_interval": "500"}}
    example: ClassVar = {"num_steps": "50", "mode": "TRAIN"}
    inspects = "losses that are single numbers (collection losses, collection_names or tensor_regex)"
    advice = (
        "Check the learning rate, that the optimizer has the model's parameters, and that gradients are not 0.",
        "The loss of a single batch is noisy: raise num_steps to that of an epoch, or judge validation (mode EVAL).",
        "Late losses fall slowly: lower diff_percent. Accuracies should rise: exclude them in tensor_regex.",
    )

    def _prepare(self) -> None:
        self._collections: list[str] = self.values["collection_names"] or []
        if not (self.values["use_losses_collection"] or self._collections or self.values["tensor_regex"]):
            raise self.refuse("give collection_names or tensor_regex, or leave use_losses_collection True.")
        # A loss that does not fall and one that rises are measured by different numbers.
        span = f"in {self.values['num_steps']} steps or more (%)"
        self._falls = Limit(f"fall of the loss {span}", self.values["diff_percent"], "below")
        self._rises = Limit(f"rise of the loss {span}", self.values["increase_threshold_percent"])
        self._modes_seen: dict[str, set[ModeKeys]] = {}
        self._last_compared: dict[tuple[str, ModeKeys], int] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a loss does not decrease as it should, at this global step."""
        names = set(choose_scalars(self.tensors, step, self._collections, self.values["tensor_regex"]))
        if self.values["use_losses_collection"]:
            names.update(keep_scalars(self.tensors, step, choose_collected_losses(self.tensors, step)))
        for name in sorted(names):
            mode = self._choose_mode(name, step)
            if mode is not ModeKeys.GLOBAL and self.base_trial.mode(step) is not mode:
                continue
            self.inspected += 1
            if self._is_stuck(name, step, mode):
                return True
        return False

    def remark(self) -> str:
        """Say which modes have losses, if the one to judge has none."""
        seen = set().union(*self._modes_seen.values())
        if self.inspected or not seen:
            return ""
        modes = ", ".join(mode.name for mode in _MODES if mode in seen)
        return (
            f"Losses were saved in mode {modes}, but none in mode {self.values['mode']}, which the rule has to judge."
        )

    def _choose_mode(self, name: str, step: int) -> ModeKeys:
        seen = self._modes_seen.setdefault(name, set())
        seen.add(self.base_trial.mode(step) or ModeKeys.GLOBAL)
        if self.values["mode"] is not None:
            return ModeKeys[self.values["mode"]]
        return next((mode for mode in _MODES if mode in seen), ModeKeys.GLOBAL)

    def _is_stuck(self, name: str, step: int, mode: ModeKeys) -> bool:
        num_steps: int = self.values["num_steps"]
        mode_step = step if mode is ModeKeys.GLOBAL else self.base_trial.mode_step(step)
        assert mode_step is not None
        last_compared = self._last_compared.get((name, mode))
        if last_compared is not None and mode_step < last_compared + num_steps:
            return False
        earlier = self.base_trial.tensor(name).prev_steps(mode_step - num_steps, 1, mode)
        if not earlier:
            return False
        self._last_compared[name, mode] = mode_step
        before_step = self.base_trial.global_step(mode, earlier[0])
        assert before_step is not None
        before, now = self.tensors.read_mean(name, before_step), self.tensors.read_mean(name, step)
        fall = compute_fall_percent(before, now)
        limit, value = (self._rises, -fall) if fall < 0 else (self._falls, fall)
        self.watch_limit(limit, step, value, name)
        problem = describe_problem(before, now, self._falls.threshold, self._rises.threshold)
        if problem is None:
            return False
        text = f"{now:.6g} after {before:.6g} at {mode.name} step {earlier[0]}: {problem}"
        return self.find(name, step, value, limit.threshold, text)
