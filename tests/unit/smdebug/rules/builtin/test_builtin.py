"""Tests of all built-in rules together, and of claims about them elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import smdebug_rulesconfig as rule_configs  # what the SDK has as sagemaker.debugger.rule_configs
from smdebug_rulesconfig.debugger_rules import builtin_rules

import smdebug.rules.builtin as built_in
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.parameters import convert_parameters
from smdebug.rules.report.rule_pages import build_page, format_default
from tests.unit.smdebug.rules.builtin.judging import write_run

# Parameters and defaults as AWS documents them; "*" stands for collection_names and tensor_regex without a default.
DOCUMENTED: dict[str, dict[str, str | None]] = {
    "VanishingGradient": {"threshold": "0.0000001"},
    "ExplodingTensor": {"*": None, "only_nan": "False"},
    "DeadRelu": {"tensor_regex": ".*relu_output", "threshold_inactivity": "1.0", "threshold_layer": "50.0"},
    "PoorWeightInitialization": {
        "activation_inputs_regex": ".*relu_input",
        "threshold": "10.0",
        "distribution_range": "0.001",
        "patience": "5",
        "steps": "10",
    },
    "SaturatedActivation": {
        "collection_names": None,
        "tensor_regex": ".*tanh_input|.*sigmoid_input",
        "threshold_tanh_min": "-9.4999",
        "threshold_tanh_max": "9.4999",
        "threshold_sigmoid_min": "-23",
        "threshold_sigmoid_max": "16.99999",
        "threshold_inactivity": "1.0",
        "threshold_layer": "50.0",
    },
    "WeightUpdateRatio": {
        "num_steps": None,
        "large_threshold": "10.0",
        "small_threshold": "0.00000001",
        "epsilon": "0.000000001",
    },
    "AllZero": {"*": None, "threshold": "100"},
    "ClassImbalance": {
        "threshold_imbalance": "10",
        "threshold_misprediction": "0.7",
        "samples": "500",
        "argmax": "False",
        "labels_regex": ".*labels",
        "predictions_regex": ".*predictions",
    },
    "LossNotDecreasing": {
        "*": None,
        "use_losses_collection": "True",
        "num_steps": "10",
        "diff_percent": "0.1",
        "increase_threshold_percent": "5",
        "mode": None,
    },
    "Overfit": {"tensor_regex": None, "start_step": "0", "patience": "1", "ratio_threshold": "0.1"},
    "Overtraining": {"patience_train": "5", "patience_validation": "10", "delta": "0.01"},
    "SimilarAcrossRuns": {"*": None},
    "StalledTrainingRule": {
        "threshold": "1800",
        "stop_training_on_fire": "False",
        "training_job_name_prefix": None,
    },
    "TensorVariance": {"*": None, "max_threshold": None, "min_threshold": None},
    "UnchangedTensor": {"*": None, "num_steps": "3", "rtol": "1e-05", "atol": "1e-08", "equal_nan": "False"},
    "CheckInputImages": {
        "threshold_mean": "0.2",
        "threshold_samples": "500",
        "regex": ".*hybridsequential0_input_0",
        "channel": "1",
    },
    "NLPSequenceRatio": {
        "tensor_regex": ".*embedding0_input_0",
        "token_values": "0",
        "token_thresholds_percent": "50",
    },
    "Confusion": {
        "category_no": None,
        "labels": "labels",
        "predictions": "predictions",
        "labels_collection": "labels",
        "predictions_collection": "predictions",
        "min_diag": "0.9",
        "max_off_diag": "0.1",
        "start_step": None,
        "end_step": None,
    },
    "FeatureImportanceOverweight": {
        "threshold": "0.8",
        "nfeatures": "3",
        "tensor_regex": ".*feature_importance/weight",
    },
    "TreeDepth": {"depth": "4"},
    "CreateXgboostReport": {},
}
SDK_FUNCTIONS = [name for name in dir(builtin_rules) if not name.startswith("_")]


def expand(documented: dict[str, str | None]) -> dict[str, str | None]:
    given = dict(documented)
    if "*" in given:
        del given["*"]
        given |= {"collection_names": None, "tensor_regex": None}
    return given


def test_all_that_aws_documents_are_found_by_the_folder_scan() -> None:
    assert set(DOCUMENTED) <= set(list_names())
    assert len(DOCUMENTED) == 21


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_parameters_and_defaults(name: str) -> None:
    rule = find_built_in_rule(name)
    documented = expand(DOCUMENTED[name])
    assert {parameter.name for parameter in rule.parameters} == set(documented)
    for parameter in rule.parameters:
        text = documented[parameter.name]
        assert parameter.default == (None if text is None else parameter.convert(text))
        # The text of a default stands for the default.
        assert convert_parameters(name, [parameter], {parameter.name: format_default(parameter.default)}) == {
            parameter.name: parameter.default
        }


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_a_rule_says_of_itself(name: str) -> None:
    rule = find_built_in_rule(name)
    assert rule.__name__ == name
    assert "Source: AWS's documentation" in str(rule.__doc__)
    assert set(rule.frameworks) <= {"PyTorch", "TensorFlow", "MXNet", "XGBoost"}
    assert getattr(built_in, name) is rule
    example = {key: text for key, text in rule.example.items() if key != "other_trials"}
    convert_parameters(name, rule.parameters, example)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_unknown_and_impossible_parameters_are_refused(name: str) -> None:
    rule = find_built_in_rule(name)
    with pytest.raises(SMDebugValueError, match=f"Rule {name}: there is no parameter 'treshold'. Its parameters are: "):
        convert_parameters(name, rule.parameters, {"treshold": "1"})
    for parameter in rule.parameters:
        if parameter.expected.startswith(("a number", "a whole number", "numbers", "True or False", "one of")):
            with pytest.raises(SMDebugValueError, match=f"{parameter.name} is 'x', expected {parameter.expected}"):
                convert_parameters(name, rule.parameters, {parameter.name: "x"})


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("TensorVariance", {"min_threshold": "2", "max_threshold": "1"}, "min_threshold 2 is above max_threshold 1"),
        ("WeightUpdateRatio", {"small_threshold": "11"}, "small_threshold 11 is above large_threshold 10"),
        ("NLPSequenceRatio", {"token_values": "0,0", "token_thresholds_percent": "10,90"}, "give each token once"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    tmp_path: Path, name: str, given: dict[str, str], said: str
) -> None:
    choice = {"tensor_regex": "."} if name == "TensorVariance" else {}
    with pytest.raises(SMDebugValueError, match=f"Rule {name}: .*{said}"):
        find_built_in_rule(name)(write_run(tmp_path, [{"t": 1.0}]), **choice, **given)


def read_sdk_configs() -> dict[str, dict[str, Any]]:
    configs = [getattr(rule_configs, function)() for function in SDK_FUNCTIONS]
    return {config["DebugRuleConfiguration"]["RuleParameters"]["rule_to_invoke"]: config for config in configs}


def test_every_rule_of_the_sdk_is_there_and_takes_its_parameters() -> None:
    configs = read_sdk_configs()
    assert set(configs) == set(DOCUMENTED)
    for name, config in configs.items():
        given = dict(config["DebugRuleConfiguration"]["RuleParameters"])
        assert given.pop("rule_to_invoke") == name
        convert_parameters(name, find_built_in_rule(name).parameters, given)


def test_collections_of_the_sdk_are_those_that_rules_look_at() -> None:
    for name, config in read_sdk_configs().items():
        attached = {each["CollectionName"] for each in config.get("CollectionConfigurations", ())}
        assert attached <= set(find_built_in_rule(name).collections), name


def test_committed_page_is_what_the_rules_say() -> None:
    page = (Path(__file__).parents[5] / "docs/rules.md").read_text(encoding="utf-8")
    assert page == build_page(), "write it again: python -m smdebug.rules docs > docs/rules.md"


def test_examples_of_the_page_name_functions_of_the_sdk() -> None:
    page = build_page()
    for name in SDK_FUNCTIONS:
        assert f"rule_configs.{name}()," in page


@pytest.mark.parametrize("name", ["Vanishing", "vanishinggradient", "../x", ""])
def test_unknown_rule_lists_the_known(name: str) -> None:
    with pytest.raises(SMDebugValueError, match=r"ExplodingTensor, .*LossNotDecreasing, .*VanishingGradient"):
        find_built_in_rule(name)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no built-in rule 'Unknown'"):
        _ = built_in.Unknown
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        _ = built_in.unknown
