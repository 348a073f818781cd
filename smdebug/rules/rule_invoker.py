"""Step-by-step evaluation of a rule."""

import time
from collections.abc import Callable, Iterator

from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    SMDebugError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.rules.rule import Rule

# Seconds between two calls of a rule's idle check while no new step comes.
_ASK_IDLE_EVERY_S = 1.0


def evaluate_steps(rule_obj: Rule, start_step: int, end_step: int | None) -> Iterator[tuple[int, SMDebugError | None]]:
    """Evaluate a rule at each saved step, as the steps come; step numbers that were never saved cost nothing.

    Args:
        rule_obj: the rule.
        start_step: first global step.
        end_step: global step to stop before; None: continue until the job has ended.

    Yields:
        The step, with None if the rule returned False, RuleEvaluationConditionMet if it returned True, or the error
        that says which data the step lacks. If the rule fires because no new step comes, the step is the last one that
        came, or -1 if there was none.

    Raises:
        NoMoreData: the job ended before end_step.
        Exception: whatever else the rule raises.
    """
    trial = rule_obj.base_trial
    step = start_step
    while end_step is None or step < end_step:
        try:
            found = trial.wait_for_next_step(step, end_step, while_waiting=build_idle_check(rule_obj))
        except RuleEvaluationConditionMet as idle:
            yield idle.step, idle
            # The rule has fired for this pause: only a new step can change anything.
            found = trial.wait_for_next_step(step, end_step)
        if found is None:
            known = trial.steps(show_incomplete_steps=True)
            if trial.loaded_all_steps and (not known or step > known[-1]):
                raise NoMoreData(step, ModeKeys.GLOBAL, known[-1] if known else -1)
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


def build_idle_check(rule_obj: Rule) -> Callable[[], None]:
    """Return a function that runs a rule's idle check at intervals while a step is waited for."""
    asked_at = time.monotonic()

    def ask() -> None:
        nonlocal asked_at
        now = time.monotonic()
        if now - asked_at >= _ASK_IDLE_EVERY_S:
            asked_at = now
            rule_obj.invoke_idle()

    return ask


def invoke_rule(
    rule_obj: Rule, start_step: int | None = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Evaluate a rule at each saved step, as the steps come.

    Steps that lack data that the rule reads are skipped.

    Args:
        rule_obj: the rule.
        start_step: first global step; None means 0.
        end_step: global step to stop before; None: continue until the job has ended.
        raise_eval_cond: whether to end with RuleEvaluationConditionMet at the first step where the condition is met. If
            False, that is logged and the evaluation continues.

    Raises:
        NoMoreData: the job ended before end_step; if end_step is None, a whole evaluation ends this way.
        RuleEvaluationConditionMet: see raise_eval_cond.
        Exception: whatever else the rule raises.
    """
    first = start_step or 0
    logger = get_logger()
    name = rule_obj.rule_name
    logger.info(
        "Rule %s is evaluated at global steps from %d %s.",
        name,
        first,
        "on" if end_step is None else f"to {end_step - 1}",
    )
    evaluated = met = 0
    try:
        for step, outcome in evaluate_steps(rule_obj, first, end_step):
            if outcome is not None and not isinstance(outcome, RuleEvaluationConditionMet):
                logger.debug("Rule %s skipped step %d: %s", name, step, outcome)
                continue
            evaluated += 1
            if outcome is None:
                continue
            met += 1
            if raise_eval_cond:
                raise outcome
            logger.warning("%s", outcome)
            if outcome.end_of_rule:
                return
    finally:
        logger.info("Rule %s was evaluated at %d steps; its condition was met at %d of them.", name, evaluated, met)
