"""Slips in rule configurations: names of rules and parameters that do not exist."""

import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from typing import Any

# The repository of AWS's image of built-in rules. What a rule in another image reads is not known.
_REPOSITORY = re.compile(r"(.*/)?sagemaker-debugger-rules([:@].*)?")
# Parameters that are not the rule's own.
_READ_FOR_EVERY_RULE = re.compile(r"rule_to_invoke|action_json|other_trials|other_trial_\d+")
_SIMILARITY = 0.6
_REPORT = "ProfilerReport"


@functools.cache
def load_rules() -> Mapping[str, Mapping[str, list[str]]]:
    """Return the parameters of each built-in rule, by the member of a request that holds such rules."""
    rules: dict[str, dict[str, list[str]]] = json.loads(files(__package__).joinpath("rules.json").read_bytes())
    return rules


def find_rule_slips(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each built-in rule and parameter that does not exist."""
    for member, rules in load_rules().items():
        for configuration in request.get(member) or ():
            parameters = configuration.get("RuleParameters") or {}
            if "source_s3_uri" in parameters or not _REPOSITORY.fullmatch(configuration.get("RuleEvaluatorImage", "")):
                continue
            name = configuration["RuleConfigurationName"]
            invoked = parameters.get("rule_to_invoke") or name
            if invoked not in rules:
                yield f"{member}: {name} invokes {invoked!r}, which is not a built-in rule. {_suggest(invoked, rules)}"
                continue
            known = {*rules[invoked], *(_list_reported_parameters(rules) if invoked == _REPORT else ())}
            for each in parameters:
                if each not in known and not _READ_FOR_EVERY_RULE.fullmatch(each):
                    yield f"{member}: {invoked} of {name} has no parameter {each!r}. {_suggest(each, known)}"


def _list_reported_parameters(rules: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield the parameters that ProfilerReport passes to the rules in it."""
    for rule, parameters in rules.items():
        if rule != _REPORT:
            yield from (f"{rule}_{each}" for each in parameters)


def _suggest(name: str, known: Collection[str]) -> str:
    by_lower_case = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=_SIMILARITY)
    return f"Did you mean {by_lower_case[near[0]]}?" if near else f"Known: {', '.join(sorted(known))}."
