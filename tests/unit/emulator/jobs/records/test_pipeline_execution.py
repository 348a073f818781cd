"""What a pipeline's definition says, with the values put in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.records.pipeline_execution import (
    bind_parameters,
    follow_path,
    list_needs,
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


def test_needs_are_those_named_and_those_referred_to() -> None:
    uri = {"Std:Join": {"On": "/", "Values": [{"Get": "Steps.Split.Output"}, {"Get": "Parameters.x"}]}}
    assert list_needs(step("B", {"A": [{"B": uri}]}, DependsOn=["A"])) == {"A", "Split"}


def test_references_and_joins_are_resolved() -> None:
    value = {"a": [{"Std:Join": {"On": "/", "Values": ["s3:/", {"Get": "Parameters.b"}, 3]}}], "c": {"Get": "Steps.x"}}
    assert resolve(value, lambda path: path.upper()) == {"a": ["s3://PARAMETERS.B/3"], "c": "STEPS.X"}


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
        ([{"Name": "count", "Value": "two"}], "count is no Integer"),
        ([*given, {"Name": "other", "Value": "1"}], "no parameters other"),
    ):
        with pytest.raises(ValidationException, match=text):
            bind_parameters(definition, wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON object"),
        ("[]", "no JSON object"),
        (json.dumps({"Steps": [step("C", kind="Condition")]}), r"are not emulated: C \(Condition\)"),
        (json.dumps({"Steps": [step("A", DependsOn=["Gone"])]}), "A needs Gone, which the pipeline has not"),
    ],
)
def test_a_definition_that_cannot_run_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValidationException, match=said):
        read_definition(text)
