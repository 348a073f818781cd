"""LossNotDecreasing: a loss that does not fall."""

import math
from typing import ClassVar

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, USE_LOSSES, BuiltInRule
from smdebug.rules.measuring.losses import (
    choose_collected_losses,
    choose_scalars,
    drop_training_losses,
    keep_scalars,
)
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
    else by all its steps. In an EVAL step, a loss beside one whose name begins with val_, validation, eval or test is a
    training loss, and is not judged. A training that validates once an epoch has few EVAL steps, seldom num_steps
    apart, and then the rule compares nothing: the example therefore sets mode to TRAIN.

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
        (
            "Late losses fall slowly: lower diff_percent. "
            "Leave out metrics that rise: tensor_regex, use_losses_collection False."
        ),
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
        # The first and the last step with the loss, in steps of the mode.
        self._spans: dict[tuple[str, ModeKeys], tuple[int, int]] = {}
        self._last_compared: dict[tuple[str, ModeKeys], int] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Whether a loss does not decrease as it should, at this global step."""
        names = set(choose_scalars(self.tensors, step, self._collections, self.values["tensor_regex"]))
        if self.values["use_losses_collection"]:
            names.update(keep_scalars(self.tensors, step, choose_collected_losses(self.tensors, step)))
        if self.base_trial.mode(step) is ModeKeys.EVAL:
            names = set(drop_training_losses(names))
        for name in sorted(names):
            mode = self._choose_mode(name, step)
            if mode is not ModeKeys.GLOBAL and self.base_trial.mode(step) is not mode:
                continue
            self.inspected += 1
            if self._is_stuck(name, step, mode):
                return True
        return False

    def shortage(self) -> str:
        """Say that no two steps with a loss were num_steps apart."""
        return "" if self.watched_quantities else f"no comparison was made. {self._explain_no_comparison()}"

    def remark(self) -> str:
        """Say which modes have losses if the one to judge has none, or no two steps that could be compared."""
        seen = set().union(*self._modes_seen.values())
        judged = {(name, self._get_mode(name)) for name in self._modes_seen}
        if self.watched_quantities and judged.isdisjoint(self._last_compared):
            # There were comparisons before the losses were saved in this mode.
            return f"Only early steps were compared. {self._explain_no_comparison()}"
        if self.inspected or not seen:
            return ""
        modes = ", ".join(mode.name for mode in _MODES if mode in seen)
        return (
            f"Losses were saved in mode {modes}, but none in mode {self.values['mode']}, which the rule has to judge: "
            "set mode to one that has losses, or leave it out."
        )

    def _choose_mode(self, name: str, step: int) -> ModeKeys:
        mode, mode_step = self.base_trial.mode_modestep(step)
        self._modes_seen.setdefault(name, set()).add(mode or ModeKeys.GLOBAL)
        for counted, at in ((mode, mode_step), (ModeKeys.GLOBAL, step)):
            if counted is not None and at is not None:
                self._spans[name, counted] = self._spans.get((name, counted), (at, at))[0], at
        return self._get_mode(name)

    def _get_mode(self, name: str) -> ModeKeys:
        if self.values["mode"] is not None:
            return ModeKeys[self.values["mode"]]
        return next((mode for mode in _MODES if mode in self._modes_seen[name]), ModeKeys.GLOBAL)

    def _explain_no_comparison(self) -> str:
        """Say how far apart the steps of the judged mode are, and which parameters would help."""
        num_steps: int = self.values["num_steps"]
        distances = {key: last - first for key, (first, last) in self._spans.items()}
        judged = {name: distances.get((name, self._get_mode(name)), 0) for name in self._modes_seen}
        name = max(judged, key=lambda each: judged[each])
        mode, most = self._get_mode(name), judged[name]
        kind = "steps" if mode is ModeKeys.GLOBAL else f"{mode.name} steps"
        have = f"are at most {most} apart" if most else "are fewer than two"
        is_train_long = self.values["mode"] is None and distances.get((name, ModeKeys.TRAIN), 0) >= num_steps
        helps = ["set mode to TRAIN"] if is_train_long else []
        helps += [f"lower num_steps to {most} or less"] if most else []
        advice = f"{', '.join(helps)}, or train for longer" if helps else "train for longer"
        return (
            f"The {kind} of a loss have to be num_steps ({num_steps}) apart to be compared, and {have}. "
            f"{advice[0].upper()}{advice[1:]}."
        )

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
