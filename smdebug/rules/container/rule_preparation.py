"""Preparation of a rule: class lookup and parameter checks before any tensor."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action.action import check_actions
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule
from smdebug.rules.container.custom_source import (
    check_arguments,
    convert_arguments,
    download_source,
    import_rule,
    list_arguments,
)
from smdebug.rules.container.requirements import install_requirements
from smdebug.rules.container.rule_config import RuleConfig
from smdebug.rules.container.run_opening import open_other_trials
from smdebug.rules.parameters import Parameter, convert_parameters, integer
from smdebug.rules.rule import Rule
from smdebug.trials import Trial

# The parameter that contains a rule's built-in actions.
_ACTIONS = "action_json"
# Parameters that every rule accepts. A rule that declares one of these names itself receives it.
STEPS: tuple[Parameter, ...] = (integer("start_step", 0, minimum=0), integer("end_step", None, minimum=0))


@dataclass(frozen=True)
class PreparedRule:
    """A rule that can be created as soon as its run exists.

    Attributes:
        rule_class: its class.
        arguments: the arguments of its constructor except trials.
        other_trials: runs to compare with.
        actions: JSON of its actions, or blank.
        start_step: first global step to evaluate.
        end_step: global step to stop before; None: no end.
    """

    rule_class: type[Rule]
    arguments: dict[str, Any]
    other_trials: list[Trial]
    actions: str
    start_step: int
    end_step: int | None

    @property
    def watches_silence(self) -> bool:
        """Whether the rule can fire because no step comes, even before the run has begun."""
        return issubclass(self.rule_class, BuiltInRule) and self.rule_class.check_idle is not BuiltInRule.check_idle

    def build(self, trial: Trial) -> Rule:
        """Return the rule for a run; raises whatever a custom rule's constructor raises."""
        others = {"other_trials": self.other_trials} if self.other_trials else {}
        rule = self.rule_class(trial, **others, **self.arguments)
        rule.set_actions(self.actions)
        return rule


def prepare_rule(config: RuleConfig, source_folder: Path) -> PreparedRule:
    """Find the rule and check its parameters, before waiting for any tensor.

    Args:
        config: what to evaluate.
        source_folder: empty folder for a custom rule's code.

    Raises:
        SMDebugValueError: there is no such rule, it cannot use its parameters, or another trial is missing.
        Exception: whatever a custom rule's file raises when it is imported.
    """
    given = dict(config.parameters)
    actions = given.pop(_ACTIONS, "")
    check_actions(actions)
    config = replace(config, parameters=given)
    rule_class: type[Rule]
    if config.source_s3_uri is None:
        rule_class = find_built_in_rule(config.rule_to_invoke)
    else:
        sources = download_source(config.source_s3_uri, source_folder)
        install_requirements(sources, source_folder)
        rule_class = import_rule(sources, source_folder, config.rule_to_invoke)
    arguments, start_step, end_step = split_steps(rule_class, given)
    if issubclass(rule_class, BuiltInRule):
        check_other_trials(rule_class, config.other_trials)
    else:
        check_arguments(rule_class, {**arguments, **({"other_trials": None} if config.other_trials else {})})
        arguments = convert_arguments(rule_class, arguments)
    others = open_other_trials(config)
    return PreparedRule(rule_class, arguments, others, actions, start_step, end_step)


def split_steps(rule_class: type[Rule], given: Mapping[str, str]) -> tuple[dict[str, Any], int, int | None]:
    """Return a rule's own parameters, as text, and the limits of its evaluation, start_step and end_step.

    Raises:
        SMDebugValueError: a built-in rule does not have or cannot use a parameter, or a step is not a number.
    """
    built_in = rule_class.parameters if issubclass(rule_class, BuiltInRule) else None
    own = list_arguments(rule_class) if built_in is None else {parameter.name for parameter in built_in}
    declared = [parameter for parameter in STEPS if parameter.name not in own]
    if built_in is not None:
        # All problems are reported in one message.
        convert_parameters(rule_class.__name__, (*built_in, *declared), given)
    outer = {name: text for name, text in given.items() if name in {each.name for each in declared}}
    steps = convert_parameters(rule_class.__name__, declared, outer)
    inner = {name: text for name, text in given.items() if name not in outer}
    return inner, steps.get("start_step", 0), steps.get("end_step")


def check_other_trials(rule_class: type[BuiltInRule], others: Collection[str]) -> None:
    """Check that no runs to compare with are given to a rule that compares none.

    Raises:
        SMDebugValueError: such runs are given.
    """
    if others and not rule_class.compares_runs:
        raise SMDebugValueError(f"Rule {rule_class.__name__} compares with no other trial: leave them out.")
