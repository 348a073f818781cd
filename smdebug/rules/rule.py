"""Base of all rules, built-in and custom."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.rules.action import Actions
from smdebug.rules.required_tensors import RequiredTensors
from smdebug.rules.watched_quantity import Side, WatchedQuantity, to_json_number
from smdebug.trials.trial import Trial


@dataclass(frozen=True)
class Finding:
    """The reason why a rule returned True.

    Attributes:
        tensor: name of the tensor.
        step: global step; -1 if no step was saved yet.
        mode: the mode of that step.
        mode_step: its number in that mode.
        value: the measured value, in the unit of the threshold.
        threshold: the value that it is compared with; None if there is no number.
        text: one sentence that says what `value` is and how it compares with the threshold.
        worker: the worker that saved the tensor.
        what_to_do: advice, one or two sentences per line.
    """

    tensor: str
    step: int
    mode: ModeKeys | None
    mode_step: int | None
    value: float
    threshold: float | None
    text: str
    worker: str | None = None
    what_to_do: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"step {self.step}" if self.step >= 0 else "no step yet"
        if self.mode is not None:
            place += f" (mode {self.mode.name}, mode step {self.mode_step})"
        worker = "" if self.worker is None else f", {self.worker}"
        return f"{self.tensor} at {place}{worker}: {self.text}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name; numbers that JSON cannot represent become text, the mode becomes its name."""
        mode = None if self.mode is None else self.mode.name
        numbers = {name: to_json_number(getattr(self, name)) for name in ("value", "threshold")}
        return {**asdict(self), **numbers, "mode": mode}

    def explain(self, most: int | None = None) -> str:
        """Return the finding, and below it what to do.

        Args:
            most: maximum length in characters; in a longer text the end of the finding is left out.
        """
        advice = "".join(f"\n- {line}" for line in self.what_to_do)
        advice = advice and f"\nWhat to do:{advice}"
        finding = str(self)
        if most is not None and len(finding) + len(advice) > most:
            finding = f"{finding[: max(most - len(advice) - 1, 0)]}…"
        return f"{finding}{advice}"


def _to_number(value: Any) -> float:
    """Convert a measured value to a plain number, which the report can hold, from numpy's number types."""
    return value if type(value) is float else float(value.item() if hasattr(value, "item") else value)


class Rule(ABC):
    """Base class of rules that judge a run.

    Override `invoke_at_step`. To load several tensors together, override `set_required_tensors` too.

    If SageMaker runs the rule, all arguments of its constructor except trials are text.

    Args:
        base_trial: the run to judge.
        action_str: JSON of built-in actions, performed when the condition is met; see `smdebug.rules.action`.
        other_trials: runs to compare with. `Rule(base_trial, other_trials)` is accepted as well.

    Attributes:
        trials: base_trial, followed by other_trials.
        req_tensors: the tensors that `set_required_tensors` requires.
        rule_name: the name of the class.
        report: counts and details for a report.
        finding: why `invoke_at_step` returned True, if the rule says so.
        watched_quantities: the values passed to `watch`, by the quantity's name.
        logger: a logger for the rule.
    """

    def __init__(self, base_trial: Trial, action_str: Any = "", other_trials: Any = None) -> None:
        if action_str is not None and not isinstance(action_str, str):
            action_str, other_trials = "", action_str
        if other_trials is not None and hasattr(other_trials, "tensor_names"):
            other_trials = [other_trials]
        self.base_trial = base_trial
        self.other_trials: list[Trial] | None = None if other_trials is None else list(other_trials)
        self.trials: list[Trial] = [base_trial, *(self.other_trials or ())]
        self.action_str = action_str or ""
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
        self.logger = get_logger()
        self.rule_name = type(self).__name__
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }
        self.finding: Finding | None = None
        self.watched_quantities: dict[str, WatchedQuantity] = {}
        self._actions: Actions | None = None
        self.set_actions(self.action_str)

    def set_actions(self, action_str: str) -> None:
        """Set up the actions to perform when the condition is met; a blank text changes nothing.

        Raises:
            json.JSONDecodeError: the text is not JSON.
        """
        if action_str.strip():
            self._actions = Actions(action_str, self.rule_name)

    def watch(
        self,
        quantity: str,
        step: int,
        value: float,
        threshold: float | None = None,
        *,
        fires: Side = "above",
        tensor: str = "",
        worker: str | None = None,
    ) -> None:
        """Record a measured value for the report and the plot of the rule.

        Args:
            quantity: what is measured, with its unit.
            step: global step.
            value: the measured value. If a step has several, the one closest to firing is kept.
            threshold: the value that it is compared with.
            fires: on which side of the threshold the rule fires.
            tensor: name of the measured tensor.
            worker: the worker that saved the tensor.

        Raises:
            TypeError, ValueError: value or threshold is not one number; arrays of one element are allowed.
        """
        watched = self.watched_quantities.get(quantity)
        if watched is None:
            limit = None if threshold is None else _to_number(threshold)
            watched = self.watched_quantities[quantity] = WatchedQuantity(quantity, limit, fires)
        mode = self.base_trial.mode(step)
        watched.add(step, _to_number(value), tensor, worker, None if mode is None else mode.name)

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 -- a rule may require nothing
        """Add to `req_tensors` the tensors that `invoke_at_step` will read at a global step."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Whether the rule's condition is met at a global step."""

    def check_idle(self) -> bool:
        """Whether the rule's condition is met while no new step comes; called about once a second during that time."""
        return False

    def invoke(self, step: int) -> None:
        """Wait for a global step and evaluate the rule there, on the data available at that moment.

        Raises:
            RuleEvaluationConditionMet: the rule returned True.
            StepUnavailable, NoMoreData: the step will not come.
            Exception: whatever the rule raises; the setting of refreshing is restored first.
        """
        self.base_trial.wait_for_steps([step])
        self.finding = None
        # Does the same as `analysis.utils.no_refresh`, without a generator at every step of every rule.
        refreshing = [trial.dynamic_refresh for trial in self.trials]
        for trial in self.trials:
            trial.dynamic_refresh = False
        try:
            if type(self).set_required_tensors is not Rule.set_required_tensors:
                self.req_tensors.clear()
                self.set_required_tensors(step)
                self.req_tensors.fetch()
            condition_met = self.invoke_at_step(step)
        finally:
            for trial, before in zip(self.trials, refreshing, strict=True):
                trial.dynamic_refresh = before
        if condition_met:
            self._fire(step)

    def invoke_idle(self) -> None:
        """Evaluate the rule while no new step comes.

        Raises:
            RuleEvaluationConditionMet: `check_idle` returned True.
            Exception: whatever the rule raises.
        """
        self.finding = None
        if self.check_idle():
            self._fire(-1 if self.finding is None else self.finding.step)

    def _fire(self, step: int) -> NoReturn:
        self.report["RuleTriggered"] += 1
        if self._actions is not None:
            found = self.finding
            told = found.explain() if isinstance(found, Finding) else found or f"The condition was met at step {step}."
            self._actions.invoke(str(told))
        raise RuleEvaluationConditionMet(self.rule_name, step)
