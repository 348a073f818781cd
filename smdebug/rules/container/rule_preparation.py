"""Preparation of a rule: class lookup and parameter checks before any tensor."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule
from smdebug.rules.container.custom_source import (
    check_arguments,
    convert_arguments,
    download_source,
    import_class,
    list_arguments,
)
from smdebug.rules.container.requirements import install_requirements
from smdebug.rules.container.rule_config import ACTIONS, RuleConfig
from smdebug.rules.container.run_opening import open_other_trials
from smdebug.rules.parameters import Parameter, convert_parameters, integer
from smdebug.rules.rule import Rule
from smdebug.trials import Trial

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
        """Return the rule for a run.

        Raises:
            SMDebugValueError: a custom rule's constructor leaves out that of its base class.
            Exception: whatever a custom rule's constructor raises.
        """
        others = {"other_trials": self.other_trials} if self.other_trials else {}
        rule = self.rule_class(trial, **others, **self.arguments)
        if not hasattr(rule, "watched_quantities"):
            raise SMDebugValueError(f"{self.rule_class.__name__}.__init__ has to call super().__init__(base_trial).")
        rule.set_actions(self.actions)
        return rule


def load_custom_class(config: RuleConfig, folder: Path) -> type | None:
    """Download and import a custom rule's code; return its class, or None for a built-in rule.

    Args:
        config: what to evaluate.
        folder: empty folder for the code.

    Raises:
        SMDebugValueError: the source has no such class.
        Exception: whatever the source raises when it is imported.
    """
    if config.source_s3_uri is None:
        return None
    sources = download_source(config.source_s3_uri, folder)
    install_requirements(sources, folder)
    return import_class(sources, folder, config.rule_to_invoke, config.assumption)


def prepare_rule(config: RuleConfig, custom: type | None) -> PreparedRule:
    """Find the rule and check its parameters, before waiting for any tensor.

    Args:
        config: what to evaluate.
        custom: the class of a custom rule; None for a built-in rule.

    Raises:
        SMDebugValueError: there is no such rule, it cannot use its parameters, or another trial is missing.
    """
    given = {name: text for name, text in config.parameters.items() if name != ACTIONS}
    try:
        rule_class: type = find_built_in_rule(config.rule_to_invoke) if custom is None else custom
    except SMDebugValueError as error:
        raise SMDebugValueError(
            f"{error}{config.assumption} For a rule of your own, source_s3_uri gives its file, and rule_to_invoke its "
            "class."
        ) from error
    if not issubclass(rule_class, Rule):
        file = Path(inspect.getfile(rule_class)).name
        raise SMDebugValueError(f"{config.rule_to_invoke} in {file} is not a rule: derive it from smdebug.rules.Rule.")
    arguments, start_step, end_step = split_steps(rule_class, given)
    if issubclass(rule_class, BuiltInRule):
        check_other_trials(rule_class, config.other_trials)
    else:
        check_arguments(rule_class, {**arguments, **({"other_trials": None} if config.other_trials else {})})
        arguments = convert_arguments(rule_class, arguments)
    others = open_other_trials(config)
    return PreparedRule(rule_class, arguments, others, config.actions, start_step, end_step)


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
