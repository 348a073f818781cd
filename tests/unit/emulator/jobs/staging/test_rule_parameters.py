import re
from typing import Any

import pytest

from docs_site.rule_names import build_table
from emulator.jobs.staging.job_warnings import find_request_warnings
from emulator.jobs.staging.rule_parameters import find_image_slips, find_rule_slips, load_rules
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.container.rule_preparation import split_steps

IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
DEBUG, PROFILER = "DebugRuleConfigurations", "ProfilerRuleConfigurations"


def find(member: str, image: str = IMAGE, **parameters: str) -> list[str]:
    rule = {"RuleConfigurationName": "mine", "RuleEvaluatorImage": image, "RuleParameters": parameters}
    return list(find_rule_slips({member: [rule]}))


def test_the_names_are_those_of_smdebug() -> None:
    assert load_rules() == build_table(), "run: make pages"


@pytest.mark.parametrize(
    ("member", "parameters", "said"),
    [
        (
            DEBUG,
            {"rule_to_invoke": "VanishingGradiant"},
            "mine invokes 'VanishingGradiant', which is not a built-in rule.",
        ),
        (DEBUG, {"rule_to_invoke": "overfit"}, "Did you mean Overfit?"),
        (DEBUG, {}, "mine invokes 'mine', which is not a built-in rule. Known: AllZero, "),
        (DEBUG, {"rule_to_invoke": "VanishingGradient", "treshold": "1"}, "Did you mean threshold?"),
        (DEBUG, {"rule_to_invoke": "VanishingGradient", "a": "1"}, "Known: end_step, start_step, threshold."),
        (PROFILER, {"rule_to_invoke": "ProfilerRepor"}, "Did you mean ProfilerReport?"),
        (PROFILER, {"rule_to_invoke": "BatchSize", "patients": "1"}, "Did you mean patience?"),
        (
            PROFILER,
            {"rule_to_invoke": "ProfilerReport", "StepOutliers_stddev": "1"},
            "Did you mean StepOutlier_stddev?",
        ),
    ],
)
def test_nearly_the_name_of_a_rule_or_parameter(member: str, parameters: dict[str, str], said: str) -> None:
    (slip,) = find(member, **parameters)
    assert slip.startswith(f"{member}: ")
    assert said in slip


def test_a_rule_that_has_its_own_name_is_named_once() -> None:
    rule = {"RuleConfigurationName": "AllZero", "RuleEvaluatorImage": IMAGE, "RuleParameters": {"treshold": "1"}}
    (slip,) = find_rule_slips({DEBUG: [rule]})
    assert slip == f"{DEBUG}: AllZero has no parameter 'treshold'. Did you mean threshold?"


@pytest.mark.parametrize(
    ("member", "parameters"),
    [
        (DEBUG, {"rule_to_invoke": "VanishingGradient", "threshold": "1", "start_step": "5", "action_json": "{}"}),
        (DEBUG, {"rule_to_invoke": "SimilarAcrossRuns", "other_trials": "s3://a/b", "other_trial_0": "c"}),
        (DEBUG, {"rule_to_invoke": "MyRule", "source_s3_uri": "s3://a/my.py", "anything": "1"}),
        (PROFILER, {"rule_to_invoke": "StepOutlier", "mode": "None", "scan_interval_us": "1"}),
        (PROFILER, {"rule_to_invoke": "ProfilerReport", "StepOutlier_n_outliers": "3", "CPUBottleneck_threshold": "9"}),
    ],
)
def test_names_that_are_right(member: str, parameters: dict[str, str]) -> None:
    assert find(member, **parameters) == []


@pytest.mark.parametrize(
    ("member", "rule", "name", "value", "expected"),
    [
        (DEBUG, "VanishingGradient", "threshold", "abc", "a number of at least 0"),
        (DEBUG, "VanishingGradient", "start_step", "-1", "a whole number of at least 0"),
        (DEBUG, "VanishingGradient", "end_step", "1.5", "a whole number of at least 0, or None"),
        (DEBUG, "DeadRelu", "threshold_layer", "101", "a number from 0 to 100"),
        (DEBUG, "DeadRelu", "tensor_regex", "a,(", "regular expressions separated by commas"),
        (DEBUG, "LossNotDecreasing", "diff_percent", "nan", "a number of at most 100"),
        (DEBUG, "LossNotDecreasing", "use_losses_collection", "yes", "True or False"),
        (PROFILER, "ProfilerReport", "StepOutlier_stddev", "wide", "a number of at least 0"),
    ],
)
def test_a_value_that_no_rule_takes(member: str, rule: str, name: str, value: str, expected: str) -> None:
    assert find(member, rule_to_invoke=rule, **{name: value}) == [
        f"{member}: {name} of mine is {value!r}, expected {expected}."
    ]
    if member == DEBUG:
        with pytest.raises(SMDebugValueError, match=re.escape(f"{name} is {value!r}, expected")):
            split_steps(find_built_in_rule(rule), {name: value})


def test_every_default_is_a_value_that_its_rule_takes() -> None:
    for rule in list_names():
        for parameter in find_built_in_rule(rule).parameters:
            default = parameter.default
            text = ",".join(map(str, default)) if isinstance(default, list) else str(default)
            assert find(DEBUG, rule_to_invoke=rule, **{parameter.name: text}) == []


@pytest.mark.parametrize("image", ["123456789012.dkr.ecr.us-east-1.amazonaws.com/mine:1", "", "rules:latest"])
def test_the_variables_that_a_custom_image_reads_are_unknown(image: str) -> None:
    assert find(DEBUG, image, rule_to_invoke="Nothing") == []


@pytest.mark.parametrize("rules", [None, [], [{"RuleConfigurationName": "Overfit", "RuleEvaluatorImage": IMAGE}]])
def test_rules_without_parameters(rules: Any) -> None:
    assert list(find_rule_slips({DEBUG: rules})) == []


def test_a_slip_is_a_warning_of_the_request() -> None:
    rule = {"RuleConfigurationName": "Overfitt", "RuleEvaluatorImage": IMAGE}
    request = {
        DEBUG: [rule],
        "DebugHookConfig": {},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    }
    (warning,) = find_request_warnings(request, None, None)
    assert warning.code == "RuleDoubtful"
    assert warning.text.endswith("Did you mean Overfit?")


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        ("sagemaker-debugger-rule:latest", "Did you mean sagemaker-debugger-rules?"),
        ("1.dkr.ecr.x/mine", "The emulator has sagemaker-debugger-rules and sagemaker-debugger-rule-evaluator."),
    ],
)
def test_an_image_that_is_not_there(image: str, hint: str) -> None:
    rules = [{"RuleConfigurationName": each, "RuleEvaluatorImage": each} for each in (image, "loaded")]
    (slip,) = find_image_slips({PROFILER: rules}, lambda name: name == "loaded")
    assert slip == (
        f"{PROFILER}: RuleEvaluatorImage of {image} is {image!r}, which is not on this machine: unless it can be "
        f"pulled, the rule's evaluation ends with Error. {hint}"
    )
