"""LossNotDecreasing: the loss does not fall, or rises."""

import math
from typing import ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, USE_LOSSES, BuiltInRule
from smdebug.rules.measuring.losses import choose_collected_losses
from smdebug.rules.parameters import choice, integer, number

_LOSSES = "losses"
# Where no mode is given, the first of these in which the loss was saved.
_MODES = (ModeKeys.EVAL, ModeKeys.TRAIN, ModeKeys.GLOBAL)


def compute_fall_percent(before: float, now: float) -> float:
    """By how many percent of |before| the loss fell; negative if it rose. NaN if a loss is no number.

    From a loss of 0 no percentage can be taken: the fall is then 0, or infinite with the sign of the change.

    >>> compute_fall_percent(4.0, 3.0), compute_fall_percent(0.0, 1.0)
    (25.0, -inf)
    """
    if before == 0:
        return now if now == 0 or math.isnan(now) else math.copysign(math.inf, -now)
    return (before - now) / abs(before) * 100.0


def describe_problem(before: float, now: float, diff_percent: float, increase_threshold_percent: float) -> str | None:
    """Return what is wrong with how a loss went from `before` to `now`; None if nothing is.

    >>> describe_problem(4.0, 3.0, 10, 5), describe_problem(4.0, 5.0, 10, 5)
    (None, 'it rose by 25 %, more than increase_threshold_percent 5')
    """
    fall = compute_fall_percent(before, now)
    if math.isnan(fall):
        return "which is no decrease that could be measured"
    if -fall > increase_threshold_percent:
        return f"it rose by {-fall:.4g} %, more than increase_threshold_percent {increase_threshold_percent:g}"
    if fall < diff_percent:
        change = f"it fell by {fall:.4g} %" if fall >= 0 else f"it rose by {-fall:.4g} %"
        return f"{change}, and should have fallen by diff_percent {diff_percent:g} at least"
    return None


class LossNotDecreasing(BuiltInRule):
    """Fires where a loss fell by less than diff_percent, or rose by more than increase_threshold_percent.

    At a step the loss is compared with that of the latest saved step which is at least num_steps back, both counted in
    the mode's own steps: fall = (before - now) / |before| * 100. After a comparison the next one is made num_steps
    later at the earliest. A loss of several elements, or of several workers, counts as their mean.

    Looked at are the tensors of the collection losses (unless use_losses_collection is False, and without XGBoost's
    metrics that are better when higher), those of collection_names, and those in whose name tensor_regex is found.
    Where no mode is given, a loss that was saved in EVAL up to the step is judged by its EVAL steps, else by its TRAIN
    steps, else by all its steps.

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
    inspects = "losses (collection losses, collection_names or tensor_regex)"

    def _prepare(self) -> None:
        self._collections: list[str] = self.values["collection_names"] or []
        if not (self.values["use_losses_collection"] or self._collections or self.values["tensor_regex"]):
            raise self.refuse("give collection_names or tensor_regex, or leave use_losses_collection True.")
        self._modes_seen: dict[str, set[ModeKeys]] = {}
        self._last_compared: dict[tuple[str, ModeKeys], int] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a loss does not decrease as it should, at this global step."""
        names = set(self.tensors.choose(step, self._collections, self.values["tensor_regex"]))
        if self.values["use_losses_collection"]:
            names.update(choose_collected_losses(self.tensors, step))
        for name in sorted(names):
            self.inspected += 1
            mode = self._choose_mode(name, step)
            if mode is not ModeKeys.GLOBAL and self.base_trial.mode(step) is not mode:
                continue
            if self._is_stuck(name, step, mode):
                return True
        return False

    def _choose_mode(self, name: str, step: int) -> ModeKeys:
        if self.values["mode"] is not None:
            return ModeKeys[self.values["mode"]]
        seen = self._modes_seen.setdefault(name, set())
        seen.add(self.base_trial.mode(step) or ModeKeys.GLOBAL)
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
        diff_percent, rise_percent = self.values["diff_percent"], self.values["increase_threshold_percent"]
        fall = compute_fall_percent(before, now)
        compared = f"fall of the loss in {num_steps} steps or more (%)"
        self.watch(compared, step, fall, diff_percent, fires="below", tensor=name)
        problem = describe_problem(before, now, diff_percent, rise_percent)
        if problem is None:
            return False
        text = f"{now:.6g} after {before:.6g} at {mode.name} step {earlier[0]}: {problem}"
        return self.find(name, step, fall, diff_percent, text)
