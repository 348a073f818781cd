"""Slips in rule configurations: unknown rules, parameters, values and images."""

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from typing import Any

# Of AWS's images for built-in and for custom rules.
_RULE_REPOSITORIES = ("sagemaker-debugger-rules", "sagemaker-debugger-rule-evaluator")
# The repository of AWS's image of built-in rules. What a rule in another image reads is not known.
_REPOSITORY = re.compile(r"(.*/)?sagemaker-debugger-rules([:@].*)?")
# Parameters that are not the rule's own.
_READ_FOR_EVERY_RULE = re.compile(r"rule_to_invoke|action_json|other_trials|other_trial_\d+")
_SIMILARITY = 0.6
# How rules.json describes numbers: "a whole number of at least 1", "numbers from 0 to 100 separated by commas".
_NUMBERS = re.compile(
    r"(a whole number|a number|numbers)( of at least (?P<least>[\d.]+)| from (?P<low>[\d.]+) to (?P<high>[\d.]+))?"
    r"( of at most (?P<most>[\d.]+))?"
)
_OR_NONE = ", or None"
_NOTHING = ("", "None", "none")
_REPORT = "ProfilerReport"


@functools.cache
def load_rules() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return what each parameter of each built-in rule takes, by the member of a request that holds such rules."""
    rules: dict[str, dict[str, dict[str, str]]] = json.loads(files(__package__).joinpath("rules.json").read_bytes())
    return rules


def find_rule_slips(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield a description of each built-in rule and parameter that does not exist, and of each value that none takes.

    The rule's evaluation checks the same before any tensor.
    """
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
            known = {**rules[invoked], **(dict(_list_reported_parameters(rules)) if invoked == _REPORT else {})}
            for each, value in parameters.items():
                if each in known and not _takes(known[each], value):
                    yield f"{member}: {each} of {name} is {value!r}, expected {known[each]}."
                elif each not in known and not _READ_FOR_EVERY_RULE.fullmatch(each):
                    rule = invoked if invoked == name else f"{invoked} of {name}"
                    yield f"{member}: {rule} has no parameter {each!r}. {_suggest(each, known)}"


def find_image_slips(request: Mapping[str, Any], has_image: Callable[[str], bool]) -> Iterator[str]:
    """Yield a description of each rule's image that is not there."""
    for member in load_rules():
        for configuration in request.get(member) or ():
            image = configuration.get("RuleEvaluatorImage", "")
            if image and not has_image(image):
                near = get_close_matches(image.rpartition("/")[2].partition(":")[0], _RULE_REPOSITORIES, n=1)
                hint = f"Did you mean {near[0]}?" if near else f"The emulator has {' and '.join(_RULE_REPOSITORIES)}."
                yield (
                    f"{member}: RuleEvaluatorImage of {configuration['RuleConfigurationName']} is {image!r}, which is "
                    f"not on this machine: unless it can be pulled, the rule's evaluation ends with Error. {hint}"
                )


def _list_reported_parameters(rules: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the parameters that ProfilerReport passes to the rules in it, with what they take."""
    for rule, parameters in rules.items():
        if rule != _REPORT:
            yield from ((f"{rule}_{each}", expected) for each, expected in parameters.items())


def _takes(expected: str, text: str) -> bool:
    """Whether a value is one that ``expected`` describes.

    >>> _takes("a whole number of at least 1", "0"), _takes("a whole number of at least 1, or None", "None")
    (False, True)
    """
    if expected.endswith(_OR_NONE) and text in _NOTHING:
        return True
    if expected.startswith("True or False"):
        return text.strip().lower() in ("true", "false")
    try:
        if found := _NUMBERS.match(expected):
            return _are_within(
                found, [float(each) for each in text.split(",")] if found[1] == "numbers" else [float(text)]
            )
        if expected.startswith("regular expressions"):
            # The comma inside a repetition, such as \d{1,2}, does not separate regexes.
            for pattern in re.split(r",(?!\d*\})", text):
                re.compile(pattern.strip())
    except (ValueError, re.error):
        return False
    return True


def _are_within(described: re.Match[str], numbers: Iterable[float]) -> bool:
    least = float(described["least"] or described["low"] or "-inf")
    most = float(described["most"] or described["high"] or "inf")
    is_whole = described[1] == "a whole number"
    return all(least <= number <= most and (number.is_integer() or not is_whole) for number in numbers)


def _suggest(name: str, known: Collection[str]) -> str:
    by_lower_case = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=_SIMILARITY)
    return f"Did you mean {by_lower_case[near[0]]}?" if near else f"Known: {', '.join(sorted(known))}."
