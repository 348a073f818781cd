"""Tests of pipeline definitions with bound parameters."""

import json
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.model.pipeline_definition import (
    bind_parameters,
    check_order,
    check_start,
    follow_path,
    is_true,
    plan_steps,
    read_definition,
    resolve,
)

DESCRIPTION = {
    "ProcessingOutputConfig": {
        "Outputs": [{"OutputName": "a", "S3Output": {"S3Uri": "s3://b/a"}}, {"OutputName": "z"}]
    },
    "InputDataConfig": [{"ChannelName": "train", "Count": 3}],
}


def step(name: str, arguments: Any = None, kind: str = "Training", **members: Any) -> dict[str, Any]:
    return {"Name": name, "Type": kind, "Arguments": arguments or {}, **members}


def behind_a_condition(*steps: dict[str, Any]) -> dict[str, Any]:
    return step("If", {"Conditions": [], "IfSteps": list(steps)}, kind="Condition")


def test_needs_are_those_named_and_those_referred_to() -> None:
    uri = {"Std:Join": {"On": "/", "Values": [{"Get": "Steps.Split.Output"}, {"Get": "Parameters.x"}]}}
    planned = plan_steps({"Steps": [step("B", {"A": [{"B": uri}]}, DependsOn=["A"])]})
    assert planned["B"].needs == {"A", "Split"}


def test_what_is_behind_a_condition_needs_it_and_its_outcome() -> None:
    inner = step("Inner", {"Conditions": [], "IfSteps": [step("Deep")]}, kind="Condition")
    conditions = [{"LeftValue": {"Get": "Steps.Score.Value"}}]
    branches = {"IfSteps": [inner], "ElseSteps": [step("Else", {"A": {"Get": "Steps.Own.B"}})]}
    planned = plan_steps(
        {"Steps": [step("If", {"Conditions": conditions, **branches}, kind="Condition"), step("Last")]}
    )
    assert list(planned) == ["If", "Last", "Inner", "Else", "Deep"], "those at the top keep their places"
    assert planned["If"].needs == {"Score"}
    assert planned["Else"].needs == {"If", "Own"}
    assert planned["Else"].guards == (("If", False),)
    assert planned["Deep"].guards == (("If", True), ("Inner", True))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"Type": "Equals", "LeftValue": "a", "RightValue": "a"}, True),
        ({"Type": "GreaterThan", "LeftValue": 1, "RightValue": 1.0}, False),
        ({"Type": "GreaterThanOrEqualTo", "LeftValue": 1, "RightValue": 1.0}, True),
        ({"Type": "LessThan", "LeftValue": 1, "RightValue": 1.5}, True),
        ({"Type": "LessThanOrEqualTo", "LeftValue": 2, "RightValue": 1.5}, False),
        ({"Type": "In", "QueryValue": 2, "Values": [1, 2]}, True),
        ({"Type": "Not", "Condition": {"Type": "In", "QueryValue": 3, "Values": [1, 2]}}, True),
        ({"Type": "Not", "Expression": {"Type": "In", "QueryValue": 2, "Values": [1, 2]}}, False),
        ({"Type": "Or", "Conditions": [{"Type": "Equals", "LeftValue": n, "RightValue": 1} for n in (0, 1)]}, True),
    ],
)
def test_conditions(condition: dict[str, Any], holds: bool) -> None:
    assert is_true(condition) is holds


@pytest.mark.parametrize("condition", [{"Type": "Like", "LeftValue": 1, "RightValue": 1}, {"Type": "Equals"}])
def test_a_condition_of_no_kind_is_an_error(condition: dict[str, Any]) -> None:
    with pytest.raises(LookupError):
        is_true(condition)


def test_references_and_joins_are_resolved() -> None:
    value = {"a": [{"Std:Join": {"On": "/", "Values": ["s3:/", {"Get": "Parameters.b"}, 3]}}], "c": {"Get": "Steps.x"}}
    assert resolve(value, str.upper, dict) == {"a": ["s3://PARAMETERS.B/3"], "c": "STEPS.X"}


def test_a_value_of_a_file_is_read_with_its_place_resolved() -> None:
    get = {"Std:JsonGet": {"S3Uri": {"Get": "Parameters.uri"}, "Path": "a"}}
    assert resolve([get], str.upper, lambda source: (source["S3Uri"], source["Path"])) == [("PARAMETERS.URI", "a")]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("ProcessingOutputConfig.Outputs['a'].S3Output.S3Uri", "s3://b/a"),
        ('ProcessingOutputConfig.Outputs["a"].S3Output.S3Uri', "s3://b/a"),
        ("InputDataConfig[0].Count", 3),
        ("InputDataConfig['train'].Count", 3),
    ],
)
def test_paths_are_followed(path: str, found: Any) -> None:
    assert follow_path(DESCRIPTION, path) == found


@pytest.mark.parametrize("path", ["Nothing", "InputDataConfig['test']", "InputDataConfig[1]"])
def test_a_path_to_nothing_is_an_error(path: str) -> None:
    with pytest.raises(LookupError):
        follow_path(DESCRIPTION, path)


def test_parameters_have_the_given_value_or_the_default() -> None:
    definition = {
        "Parameters": [
            {"Name": "text", "Type": "String", "DefaultValue": "d"},
            {"Name": "count", "Type": "Integer"},
            {"Name": "flag", "Type": "Boolean", "DefaultValue": False},
        ]
    }
    given = [{"Name": "count", "Value": "2"}, {"Name": "flag", "Value": "True"}]
    assert bind_parameters(definition, given) == {"text": "d", "count": 2, "flag": True}
    for wrong, text in (
        ([], "count has no default"),
        ([{"Name": "count", "Value": "two"}], "count does not have the type Integer"),
        ([*given, {"Name": "other", "Value": "1"}], "no parameters other"),
    ):
        with pytest.raises(ValidationException, match=text):
            bind_parameters(definition, wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", r"wrong at its top level: \[\] is not of type 'object'"),
        ("{}", "wrong at its top level: 'Steps' is a required property"),
        (json.dumps({"Steps": [step("A", [1])]}), r"wrong at Steps\[0\].Arguments: \[1\] is not of type"),
        (json.dumps({"Steps": [{**step("A"), "Type": []}]}), r"wrong at Steps\[0\].Type: \[\] is not of type 'string'"),
        (json.dumps({"Steps": [step("A", kind="Condition")]}), r"Steps\[0\].Arguments: 'Conditions' is a required"),
        (
            json.dumps({"Steps": [step("A", OutputParameters=[{}])]}),
            r"OutputParameters\[0\]: 'OutputName' is a required",
        ),
        (json.dumps({"Parameters": [{}], "Steps": []}), r"wrong at Parameters\[0\]: 'Name' is a required property"),
        (json.dumps({"Parameters": 3, "Steps": []}), "wrong at Parameters: 3 is not of type 'array'"),
        (json.dumps({"Steps": [step("C", kind="EMR")]}), r"are not emulated: C \(EMR\)"),
        (json.dumps({"Steps": [behind_a_condition(step("T", kind="Transform"))]}), r"T \(Transform\)"),
        (json.dumps({"Steps": [step("A", DependsOn=["Gone"])]}), "A needs Gone, which the pipeline does not have"),
    ],
)
def test_a_definition_that_cannot_run_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValidationException, match=said):
        read_definition(text)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([step("A"), step("A")], "the same name: A"),
        ([behind_a_condition(step("If"))], "the same name: If"),
        ([step("A", DependsOn=["A"])], "this cycle could ever start, as each needs the next: A -> A"),
        ([step("A", DependsOn=["C"]), step("B", {"x": {"Get": "Steps.A.y"}}), step("C", DependsOn=["B"])], "cycle"),
        (
            [step("If", {"Conditions": [{"Get": "Steps.In.y"}], "IfSteps": [step("In")]}, kind="Condition")],
            "needs the next: (If -> In -> If|In -> If -> In)",
        ),
        ([step("F", kind="Fail"), step("A", DependsOn=["F"])], "A can not depends on F"),
    ],
)
def test_steps_that_can_run_in_no_order_are_refused(steps: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ValidationException, match=said):
        check_order({"Steps": steps})
    with pytest.raises(ValidationException, match=said):
        read_definition(json.dumps({"Steps": steps}))


def test_a_cycle_is_told_in_the_order_of_its_needs() -> None:
    steps = [step("A", DependsOn=["C"]), step("B", DependsOn=["A"]), step("C", DependsOn=["B"])]
    with pytest.raises(ValidationException, match=r"(A -> C -> B -> A|B -> A -> C -> B|C -> B -> A -> C)"):
        check_order({"Steps": steps})


def test_a_parameter_is_one_of_its_values() -> None:
    parameter = {"Name": "size", "Type": "String", "DefaultValue": "small", "EnumValues": ["small", "large"]}
    text = json.dumps({"Parameters": [parameter], "Steps": []})
    check_start(text, [])
    check_start(text, [{"Name": "size", "Value": "large"}])
    with pytest.raises(ValidationException, match=r"'huge' of the parameter size is not one of its .*: small, large"):
        check_start(text, [{"Name": "size", "Value": "huge"}])


def test_a_reference_that_is_no_path_is_not_one() -> None:
    assert not plan_steps({"Steps": [step("A", {"x": {"Get": 3}})]})["A"].needs
