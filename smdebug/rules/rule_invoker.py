"""Evaluating a rule at one step after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smdebug.exceptions import SMDebugError
    from smdebug.rules.rule import Rule


def evaluate_steps(rule_obj: Rule, start_step: int, end_step: int | None) -> Iterator[tuple[int, SMDebugError | None]]:
    """Evaluates a rule at each step that was saved, as the steps come; numbers never saved cost nothing.

    Args:
        rule_obj: the rule.
        start_step: first global step.
        end_step: global step to stop before; None: go on until the job has ended.

    Yields:
        The step, and None if the rule answered False, RuleEvaluationConditionMet if it answered True, or the error
        that says what the step lacks for the rule.

    Raises:
        NoMoreData: the job has ended before end_step.
        Exception: whatever else the rule raises.
    """
    trial = rule_obj.base_trial
    step = start_step
    while end_step is None or step < end_step:
        found = trial.wait_for_next_step(step, end_step)
        if found is None:
            known = trial.steps(show_incomplete_steps=True)
            if trial.loaded_all_steps and (not known or step > known[-1]):
                raise NoMoreData(step, ModeKeys.GLOBAL, known[-1] if known else None)
            return
        outcome: SMDebugError | None = None
        try:
            rule_obj.invoke(found)
        except (RuleEvaluationConditionMet, TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
            outcome = error
        except NoMoreProfilerData:
            return
        yield found, outcome
        step = found + 1


def invoke_rule(
    rule_obj: Rule, start_step: int = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Evaluates a rule at each step that was saved, as the steps come.

    Steps that lack what the rule reads are passed over.

    Args:
        rule_obj: the rule.
        start_step: first global step.
        end_step: global step to stop before; None: go on until the job has ended.
        raise_eval_cond: end at the first step where the condition is met, with RuleEvaluationConditionMet; otherwise
            that is logged and the evaluation goes on.

    Raises:
        NoMoreData: the job has ended before end_step; with end_step None this is how a whole evaluation ends.
        RuleEvaluationConditionMet: see raise_eval_cond.
        Exception: whatever else the rule raises.
    """
    logger = get_logger()
    for step, outcome in evaluate_steps(rule_obj, start_step, end_step):
        if isinstance(outcome, RuleEvaluationConditionMet):
            if raise_eval_cond:
                raise outcome
            logger.warning("%s", outcome)
            if outcome.end_of_rule:
                return
        elif outcome is not None:
            logger.debug("Rule %s passed over step %d: %s", rule_obj.rule_name, step, outcome)
