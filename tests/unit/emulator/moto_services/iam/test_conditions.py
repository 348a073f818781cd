from typing import Any

import pytest

from emulator.moto_services.iam.conditions import UnknowableKeyError, conditions_hold, is_operator

VALUES = {
    "k": ["Value"],
    "number": ["10"],
    "time": ["2026-06-01T12:00:00+00:00"],
    "ip": ["10.1.2.3"],
    "arn": ["arn:aws:iam::123456789012:role/team/trainer"],
    "flag": ["true"],
    "many": ["a", "b"],
    "name": ["ann"],
    "path": ["home/ann/x"],
    "star": ["a*b"],
}


def find(key: str) -> list[str] | None:
    if key.startswith("unknowable"):
        raise UnknowableKeyError(key)
    return VALUES.get(key)


@pytest.mark.parametrize(
    ("operator", "key", "wanted", "holds"),
    [
        ("StringEquals", "K", "Value", True),
        ("StringEquals", "k", "value", False),
        ("StringEquals", "k", ["x", "Value"], True),
        ("StringEquals", "k", [], False),
        ("StringEquals", "absent", "x", False),
        ("StringEqualsIfExists", "absent", "x", True),
        ("StringEqualsIfExists", "k", "x", False),
        ("StringNotEquals", "k", ["x", "Value"], False),
        ("StringNotEquals", "k", ["x", "y"], True),
        ("StringNotEquals", "absent", "x", True),
        ("StringEqualsIgnoreCase", "k", "vALUE", True),
        ("StringNotEqualsIgnoreCase", "k", "vALUE", False),
        ("StringLike", "k", "V?l*", True),
        ("StringLike", "k", "v*", False),
        ("StringNotLike", "k", "V*", False),
        ("StringLike", "path", "home/${name}/*", True),
        ("StringLike", "path", "home/${absent}/*", False),
        ("StringLike", "star", "a${*}b", True),
        ("StringLike", "path", "home${*}", False),
        ("StringEquals", "star", "a${*}b", True),
        ("NumericEquals", "number", 10.0, True),
        ("NumericNotEquals", "number", "10", False),
        ("NumericLessThan", "number", "10", False),
        ("NumericLessThanEquals", "number", "10", True),
        ("NumericGreaterThan", "number", "9.5", True),
        ("NumericGreaterThanEquals", "number", ["11", "10"], True),
        ("NumericEquals", "number", "ten", False),
        ("NumericEquals", "k", "10", False),
        ("DateLessThan", "time", "2026-06-01T12:00:01Z", True),
        ("DateGreaterThan", "time", "2026-06-01T12:00:00Z", False),
        ("DateEquals", "time", "1780315200", True),
        ("DateGreaterThan", "time", "2026", True),
        ("DateNotEquals", "time", "never", True),
        ("DateLessThan", "time", "9" * 400, False),
        ("Bool", "flag", "true", True),
        ("Bool", "flag", True, True),
        ("Bool", "flag", "false", False),
        ("BinaryEquals", "k", "Value", True),
        ("IpAddress", "ip", "10.1.0.0/16", True),
        ("IpAddress", "ip", ["192.0.2.1", "10.1.2.3"], True),
        ("NotIpAddress", "ip", "10.1.0.0/16", False),
        ("NotIpAddress", "ip", "no address", True),
        ("IpAddress", "k", "10.1.0.0/16", False),
        ("ArnEquals", "arn", "arn:aws:iam::123456789012:role/*", True),
        ("ArnLike", "arn", "arn:aws:iam::*:role/team/?rainer", True),
        ("ArnLike", "arn", "arn:*:trainer", False),
        ("ArnNotLike", "arn", "arn:aws:iam::999999999999:*", True),
        ("ArnNotEquals", "arn", "arn:aws:iam::123456789012:role/team/trainer", False),
        ("Null", "absent", "true", True),
        ("Null", "k", "true", False),
        ("Null", "k", False, True),
        ("ForAnyValue:StringEquals", "many", ["b", "c"], True),
        ("ForAnyValue:StringEquals", "absent", ["b"], False),
        ("ForAllValues:StringEquals", "many", ["b", "c"], False),
        ("ForAllValues:StringLike", "many", "?", True),
        ("ForAllValues:StringEquals", "absent", "x", True),
        ("ForAllValues:StringNotEquals", "many", ["a"], False),
        ("ForAnyValue:StringNotEquals", "many", ["a"], True),
    ],
)
def test_an_operator(operator: str, key: str, wanted: Any, holds: bool) -> None:
    assert is_operator(operator)
    assert conditions_hold({operator: {key: wanted}}, find) is holds


def test_every_condition_has_to_hold() -> None:
    fits, fails = {"k": "Value"}, {"k": "x"}
    assert conditions_hold({}, find)
    assert conditions_hold({"StringEquals": fits, "StringNotEquals": fails}, find)
    assert not conditions_hold({"StringEquals": {**fits, "name": "bob"}}, find)


def test_a_key_that_nobody_knows_matters_only_where_all_else_holds() -> None:
    unknowable = {"StringEquals": {"Unknowable": "x"}}
    with pytest.raises(UnknowableKeyError, match=r"^unknowable$"):
        conditions_hold(unknowable, find)
    assert not conditions_hold({**unknowable, "Bool": {"flag": "false"}}, find)
    with pytest.raises(UnknowableKeyError):
        conditions_hold({"StringLike": {"k": "${unknowable}"}}, find)


@pytest.mark.parametrize("name", ["", "StringEqual", "stringequals", "ForSome:StringEquals", "Not", "ForAllValues:"])
def test_what_is_not_an_operator(name: str) -> None:
    assert not is_operator(name)
