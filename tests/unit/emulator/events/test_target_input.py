import json
from typing import Any

import pytest

from emulator.events.target_input import build_target_input, read_path
from emulator.exceptions import TargetInputError
from emulator.moto_services.eventbridge.rules import Target

EVENT = {
    "time": "2026-01-02T03:04:05Z",
    "detail": {"job": 'a "quoted" <name>', "list": [{"n": 1}, {"n": 2}], "dotted.key": True, "none": None},
}


def build_target(template: str | None = None, paths: dict[str, str] | None = None, **parameters: Any) -> Target:
    if template is not None:
        parameters["InputTransformer"] = {"InputTemplate": template, "InputPathsMap": paths or {}}
    rule = "arn:aws:events:us-east-1:123456789012:rule/my-rule"
    return Target(rule, "123456789012", "us-east-1", "default", "1", "arn", parameters)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", EVENT),
        ("$.detail.list[1].n", 2),
        ("$.detail['dotted.key']", True),
        ('$["detail"]["list"][0]', {"n": 1}),
        ("$.detail.list[7].n", None),
        ("$.nothing.below", None),
        ("$.detail.job.below", None),
    ],
)
def test_read_path(path: str, value: Any) -> None:
    assert read_path(EVENT, path) == value


@pytest.mark.parametrize("path", ["detail", "$detail", "$.detail.list[*]", "$..job", "$.list[-1]"])
def test_read_path_refuses_what_it_does_not_know(path: str) -> None:
    with pytest.raises(TargetInputError, match="path"):
        read_path(EVENT, path)


def test_whole_event_part_and_constant() -> None:
    assert json.loads(build_target_input(build_target(), EVENT)) == EVENT
    assert build_target_input(build_target(InputPath="$.detail.list"), EVENT) == '[{"n": 1}, {"n": 2}]'
    assert build_target_input(build_target(Input="as it is"), EVENT) == "as it is"


def test_template_values_are_json_outside_quotes_and_text_within() -> None:
    paths = {"job": "$.detail.job", "list": "$.detail.list", "gone": "$.gone"}
    template = '{"a": <job>, "b": "job <job>!", "c": <list>, "d": "<list>", "e": <gone>, "f": "<gone>", "<x>": 1}'
    assert json.loads(build_target_input(build_target(template, paths), EVENT)) == {
        "a": 'a "quoted" <name>',
        "b": 'job a "quoted" <name>!',
        "c": [{"n": 1}, {"n": 2}],
        "d": '[{"n": 1}, {"n": 2}]',
        "e": None,
        "f": "",
        "<x>": 1,
    }


def test_template_of_one_string_with_escapes() -> None:
    paths = {"job": "$.detail.list[0].n"}
    assert json.loads(build_target_input(build_target(r'"say \"<job>\" of <job>"', paths), EVENT)) == 'say "1" of 1'


def test_predefined_variables() -> None:
    template = '{"rule": "<aws.events.rule-name>", "arn": <aws.events.rule-arn>, "event": <aws.events.event.json>}'
    assert json.loads(build_target_input(build_target(template), EVENT)) == {
        "rule": "my-rule",
        "arn": "arn:aws:events:us-east-1:123456789012:rule/my-rule",
        "event": EVENT,
    }
