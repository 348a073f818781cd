"""StatusDetails of a rule that found no issue, or could judge nothing."""

from collections.abc import Container, Iterable
from difflib import get_close_matches
from math import isnan

from smdebug.config.collection import BUILT_IN_COLLECTIONS, Collection, CollectionKeys
from smdebug.config.save_config import SaveConfig
from smdebug.job_warnings import RULE_HAD_LITTLE_TO_JUDGE, RULE_WITHOUT_COLLECTION, warn_user
from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.container.verdict import JUDGED_NOTHING
from smdebug.rules.report.rule_report import RuleReport
from smdebug.rules.rule import Rule
from smdebug.rules.wording import count_noun
from smdebug.trials.searches import COLLECTION
from smdebug.trials.trial import Trial

# So many of the names asked for, and of those in the run, are told.
_MOST_NAMES = 3


def describe_no_issue(rule: Rule, report: RuleReport) -> str:
    """Say that nothing was found, and any reason to doubt it, which is also logged."""
    steps = f"{count_noun(report.evaluated, 'step')}, the last of them {report.last_step}"
    details = f"Rule {rule.rule_name} found no issue in {steps}."
    code = ""
    nothing = f"Rule {rule.rule_name} {JUDGED_NOTHING} It"
    in_vain = f"{nothing} found none of what it looks at in the steps up to {report.last_step}"
    if not isinstance(rule, BuiltInRule):
        if not asked_in_vain(rule):
            return details
        code, details = RULE_WITHOUT_COLLECTION, f"{in_vain}: {describe_vain_questions(rule)}"
    elif not rule.inspected:
        code, details = RULE_WITHOUT_COLLECTION, f"{in_vain}: {rule.inspects}. {rule.remark() or describe_lack(rule)}"
    else:
        shortage = rule.shortage() or describe_no_numbers(rule)
        is_partial = report.values.total() < report.evaluated or report.has_one_value
        # The first step of a rule that compares steps has no value, which needs no warning.
        is_little = is_partial and report.has_few_values
        if shortage or is_little:
            code = RULE_HAD_LITTLE_TO_JUDGE
        if shortage:
            details = f"{nothing} could not fire in {steps}: {shortage}"
        if is_partial:
            said = "had little to judge:" if is_little else "had" if shortage else "judged:"
            details += f" It {said} {describe_values(rule, report)}."
    if isinstance(rule, BuiltInRule) and rule.inspected:
        details = " ".join(filter(None, (details, rule.remark())))
    if code:
        warn_user(code, "%s", details)
    return details


def asked_in_vain(rule: Rule) -> bool:
    """Whether a custom rule asked its trials for tensors, and they had none of them at any step.

    A custom rule does not say what it inspects. One that asks for no tensor may judge the steps alone.
    """
    asked = [trial.searches for trial in rule.trials]
    return any(each.in_vain for each in asked) and not any(each.found for each in asked)


def describe_vain_questions(rule: Rule) -> str:
    """Say what a custom rule asked for, and what is there instead."""
    said = []
    for trial in rule.trials:
        if asked := list(trial.searches.in_vain)[:_MOST_NAMES]:
            names = trial.tensor_names()
            said.append(f"{', '.join(f'{chosen_by} {text}' for chosen_by, text in asked)}.")
            said += [describe_absence(text, trial) for chosen_by, text in asked if chosen_by == COLLECTION]
            some = (": " if len(names) <= _MOST_NAMES else ", such as ") + ", ".join(names[:_MOST_NAMES])
            said.append(f"The run has {count_noun(len(names), 'tensor')}{some if names else ''}.")
    return " ".join(said)


def describe_no_numbers(rule: BuiltInRule) -> str:
    """Say that all that a rule measured is NaN, which is on no side of a threshold; empty if any of it is not."""
    measured = [value for quantity in rule.watched_quantities.values() for value in quantity.values]
    if not measured or not all(map(isnan, measured)):
        return ""
    return "all that it measured is NaN. The rule ExplodingTensor names the tensor that first had NaN or infinity."


def describe_lack(rule: BuiltInRule) -> str:
    """Say why a rule found nothing to look at, by its parameters and by what the run has of its collections."""
    if "XGBoost" not in rule.frameworks and CollectionKeys.TREES in rule.base_trial.collections():
        return "XGBoost has no such tensors: the rule is for neural networks."
    patterns = [each.name for each in rule.parameters if each.name.endswith("regex")]
    given = {name: rule.values[name] for name in patterns if rule.values[name] and not rule.is_default(name)}
    lacks = [f"No such tensor was saved with a name that {name} {','.join(given[name])} finds." for name in given]
    wanted = rule.values.get("collection_names") or (() if given else rule.collections)
    lacks += [describe_absence(name, rule.base_trial, rule.collections) for name in wanted]
    return " ".join(lacks) or "Add a collection with such tensors to the job's DebugHookConfig."


def describe_absence(name: str, trial: Trial, known: Container[str] = ()) -> str:
    """Say why a run has none of the tensors that a rule expects of a collection, and what to do.

    Args:
        name: of the collection.
        trial: the run.
        known: names that are no slips, though the run may not have them.
    """
    saved = trial.collections()
    collection = saved[name] if name in saved else Collection(name)
    if collection.tensor_names:
        count = count_noun(len(collection.tensor_names), "tensor")
        return f"The collection {name} was saved with {count}, none of which is what the rule looks at."
    if collection.save_config is not None and (never := describe_steps_not_reached(collection.save_config, trial)):
        return f"The collection {name} {never}"
    # Hooks write each collection with a save config, and built-in ones even where they save none of them.
    if collection.save_config is None or name in BUILT_IN_COLLECTIONS:
        # A trial also lists the collections that a rule asked for.
        is_known = name in BUILT_IN_COLLECTIONS or name in known
        near = () if is_known else get_close_matches(name, {*saved, *BUILT_IN_COLLECTIONS} - {name}, n=1)
        meant = f"There is no collection {name}. Did you mean {near[0]}?" if near else ""
        in_keras = name in (CollectionKeys.LABELS, CollectionKeys.PREDICTIONS) and CollectionKeys.OUTPUTS in saved
        instead = f", or, for a Keras model, {CollectionKeys.OUTPUTS}, which has the {name} there" if in_keras else ""
        return meant or f"Add the collection {name} to the job's DebugHookConfig{instead}."
    if collection.include_regex:
        found = ", ".join(collection.include_regex)
        return f"The collection {name} is there, and its include_regex {found} found no tensor: correct it."
    return f"The collection {name} is there, and has no include_regex that selects tensors: give it one."


def describe_steps_not_reached(config: SaveConfig, trial: Trial) -> str:
    """Say that a save config saves none of a run's steps, and what to do; empty if it saves one, or leaves it open."""
    told = ""
    for mode in trial.modes() or [ModeKeys.GLOBAL]:
        of_mode, steps = config.mode_save_configs[mode], trial.steps(mode, show_incomplete_steps=True)
        first = None if of_mode is None else of_mode.get_next_step(0)
        if of_mode is None or not steps or (first is not None and first <= steps[-1]):
            return ""
        fields = {name: value for name, value in of_mode.to_json_dict().items() if value or name == "save_interval"}
        said = ", ".join(f"{name} {value}" for name, value in fields.items())
        of_its_mode = "" if mode is ModeKeys.GLOBAL else f" of mode {mode.name}"
        told = told or f"is to be saved at none of the steps up to {steps[-1]}{of_its_mode} ({said})"
    return f"{told}: change its save configuration, or train for longer."


def describe_values(rule: BuiltInRule, report: RuleReport) -> str:
    """Describe how many of the steps had something to judge, and how often the rule's collections are saved."""
    counts = {mode: f"{report.values[mode]} of {count_noun(all_, 'saved step')}" for mode, all_ in report.steps.items()}
    by_mode = [f"{count} of {mode.name}" for mode, count in counts.items()] if len(counts) > 1 else counts.values()
    saved = rule.base_trial.collections()
    wanted = rule.values.get("collection_names") or rule.collections
    intervals = []
    for name in wanted:
        config = saved[name].save_config if name in saved else None
        if config is not None and (interval := describe_interval(config, report.steps)):
            intervals.append(f"collection {name} is saved {interval}")
    return "; ".join([f"values in {' and '.join(by_mode)}", *intervals])


def describe_interval(config: SaveConfig, modes: Iterable[ModeKeys]) -> str:
    """Describe how often a collection is saved in these modes; empty if at every step.

    >>> by_mode = SaveConfig.from_dict({"TRAIN": {"save_interval": 5}, "EVAL": {"save_interval": 1}})
    >>> describe_interval(by_mode, [ModeKeys.TRAIN, ModeKeys.EVAL]), describe_interval(by_mode, [ModeKeys.TRAIN])
    ('every 5 TRAIN steps and every EVAL step', 'every 5 steps')
    """
    configs = {mode: config.mode_save_configs[mode] for mode in modes}
    intervals = {mode: abs(each.save_interval) for mode, each in configs.items() if each is not None}
    different = set(intervals.values())
    if different <= {1}:
        return ""
    if len(different) == 1:
        return f"every {different.pop()} steps"
    return " and ".join(
        f"every {interval} {mode.name} steps" if interval > 1 else f"every {mode.name} step"
        for mode, interval in intervals.items()
    )
