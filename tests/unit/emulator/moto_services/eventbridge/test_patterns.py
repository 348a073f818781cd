import json
from typing import Any

import pytest

from emulator.exceptions import EventPatternError
from emulator.moto_services.eventbridge.patterns import matches_event, parse_event_pattern

DETAIL = {
    "text": "Overfit",
    "number": 3,
    "real": 3.5,
    "whole": 3.0,
    "flag": True,
    "nothing": None,
    "list": ["a", "b"],
    "empty": [],
    "ip": "10.1.2.3",
    "rules": [{"name": "A", "status": "IssuesFound"}, {"name": "B", "status": "Error"}],
    "nested": {"deep": {"er": "x"}},
}


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ({"text": ["Overfit"]}, True),
        ({"text": ["overfit", "Overfit"]}, True),
        ({"text": ["Over"]}, False),
        ({"flag": [True]}, True),
        ({"flag": [1]}, False),
        ({"number": [True]}, False),
        ({"number": [3]}, True),
        ({"number": [3.0]}, True),
        ({"whole": [3]}, True),
        ({"whole": [3.5]}, False),
        ({"flag": [1.0]}, False),
        ({"number": ["3"]}, False),
        ({"nothing": [None]}, True),
        ({"absent": [None]}, False),
        ({"list": ["b"]}, True),
        ({"list": ["c"]}, False),
        ({"text": [{"prefix": "Over"}]}, True),
        ({"text": [{"prefix": "over"}]}, False),
        ({"text": [{"prefix": {"equals-ignore-case": "over"}}]}, True),
        ({"text": [{"suffix": "fit"}]}, True),
        ({"text": [{"suffix": {"equals-ignore-case": "FIT"}}]}, True),
        ({"number": [{"prefix": "3"}]}, False),
        ({"text": [{"equals-ignore-case": "OVERFIT"}]}, True),
        ({"text": [{"wildcard": "O*f*t"}]}, True),
        ({"text": [{"wildcard": "O*x"}]}, False),
        ({"text": [{"wildcard": "O\\*t"}]}, False),
        ({"text": [{"anything-but": "Overfit"}]}, False),
        ({"text": [{"anything-but": ["a", "b"]}]}, True),
        ({"number": [{"anything-but": [1, 2]}]}, True),
        ({"number": [{"anything-but": 3}]}, False),
        ({"list": [{"anything-but": "a"}]}, True),
        ({"absent": [{"anything-but": "a"}]}, False),
        ({"text": [{"anything-but": {"prefix": "Over"}}]}, False),
        ({"text": [{"anything-but": {"suffix": ["x", "y"]}}]}, True),
        ({"text": [{"anything-but": {"equals-ignore-case": "overfit"}}]}, False),
        ({"text": [{"anything-but": {"wildcard": "*x*"}}]}, True),
        ({"number": [{"numeric": [">", 2]}]}, True),
        ({"number": [{"numeric": [">", 2, "<=", 3]}]}, True),
        ({"real": [{"numeric": ["=", 3.5]}]}, True),
        ({"number": [{"numeric": ["<", 3]}]}, False),
        ({"flag": [{"numeric": [">", 0]}]}, False),
        ({"text": [{"exists": True}]}, True),
        ({"absent": [{"exists": False}]}, True),
        ({"absent": {"deeper": [{"exists": False}]}}, True),
        ({"empty": [{"exists": True}]}, False),
        ({"nested": [{"exists": True}]}, False),
        ({"nested": {"deep": {"er": [{"exists": True}]}}}, True),
        ({"ip": [{"cidr": "10.1.0.0/16"}]}, True),
        ({"ip": [{"cidr": "10.2.0.0/16"}]}, False),
        ({"text": [{"cidr": "10.2.0.0/16"}]}, False),
        ({"rules": {"name": ["A"], "status": ["IssuesFound"]}}, True),
        ({"rules": {"name": ["B"], "status": ["IssuesFound"]}}, False),
        ({"rules": {"name": ["B"]}, "$or": [{"rules": {"status": ["IssuesFound"]}}, {"absent": ["x"]}]}, False),
        ({"rules": {"name": ["B"]}, "$or": [{"rules": {"status": ["Error"]}}, {"absent": ["x"]}]}, True),
        ({"$or": [{"text": ["x"]}, {"number": [3]}]}, True),
        ({"$or": [{"text": ["x"]}, {"number": [4]}]}, False),
        ({"nested": {"$or": [{"deep": {"er": ["y"]}}, {"deep": {"er": ["x"]}}]}}, True),
        ({"text": ["Overfit"], "number": [4]}, False),
    ],
)
def test_pattern(pattern: dict[str, Any], matched: bool) -> None:
    assert matches_event(parse_event_pattern(json.dumps({"detail": pattern})), {"detail": DETAIL}) is matched


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Filter is not an object"),
        ("{}", "Empty objects are not allowed"),
        ('{"a": {}}', "Empty objects are not allowed"),
        ('{"a": []}', "Empty arrays are not allowed"),
        ('{"a": "x"}', '"a" must be an object or an array'),
        ('{"a": [["x"]]}', "Match value must be String, number, true, false, or null"),
        ('{"a": [{"prefix": "x", "suffix": "y"}]}', "Only one key allowed in match expression"),
        ('{"a": [{"starts": "x"}]}', "Unrecognized match type starts"),
        ('{"a": [{"prefix": 1}]}', "prefix match pattern must be a string"),
        ('{"a": [{"suffix": [1]}]}', "suffix match pattern must be a string"),
        ('{"a": [{"equals-ignore-case": null}]}', "equals-ignore-case match pattern must be a string"),
        ('{"a": [{"wildcard": "a**b"}]}', "Consecutive wildcard characters at pos 1"),
        ('{"a": [{"exists": "yes"}]}', "exists match pattern must be either true or false."),
        ('{"a": [{"numeric": ">"}]}', "Value of numeric must be an array."),
        ('{"a": [{"numeric": ["~", 1]}]}', "Unrecognized numeric range operator: ~"),
        ('{"a": [{"numeric": [">", "1"]}]}', "Value of > must be numeric"),
        ('{"a": [{"numeric": [">", 2, "<", 1]}]}', "Bottom must be less than top"),
        ('{"a": [{"numeric": [">", 2, "<", 3, "=", 1]}]}', "Too many elements in numeric expression"),
        ('{"a": [{"cidr": "10.0.0.1"}]}', "Malformed CIDR"),
        ('{"a": [{"anything-but": {"numeric": [">", 1]}}]}', "Value of anything-but must be"),
        ('{"a": [{"anything-but": ["x", 1]}]}', "mixed type is not supported"),
        ('{"a": [{"anything-but": []}]}', "Value of anything-but must be"),
    ],
)
def test_pattern_that_eventbridge_refuses(text: str, reason: str) -> None:
    with pytest.raises(EventPatternError) as refused:
        parse_event_pattern(text)
    assert reason in str(refused.value)


def test_billions_of_alternatives_are_counted_at_once() -> None:
    choices = {"$or": [{"x": [number]} for number in range(10)]}
    text = json.dumps({"detail": dict.fromkeys("abcdefghij", choices)})
    with pytest.raises(EventPatternError, match="at most 1000 combinations"):
        parse_event_pattern(text)


def test_alternatives_are_limited() -> None:
    ten = [{str(number): ["x"]} for number in range(10)]
    nested = {name: {"$or": ten} for name in "abcd"}
    with pytest.raises(EventPatternError, match="at most 1000 combinations"):
        parse_event_pattern(json.dumps(nested))
