from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules.parameters import Parameter, boolean, choice, convert_parameters, integer, number, regex, texts

DECLARED = (
    number("threshold", 0.5, minimum=0, maximum=1),
    integer("num_steps", 10, minimum=1),
    integer("end_step", None),
    boolean("only_nan", default=False),
    texts("collection_names"),
    regex("tensor_regex", None),
    choice("mode", None, ["TRAIN", "EVAL"]),
)


def convert(**given: Any) -> dict[str, Any]:
    return convert_parameters("MyRule", DECLARED, given)


def test_defaults() -> None:
    assert convert() == {
        "threshold": 0.5,
        "num_steps": 10,
        "end_step": None,
        "only_nan": False,
        "collection_names": None,
        "tensor_regex": None,
        "mode": None,
    }


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("threshold", "1e-1", 0.1),
        ("threshold", 1, 1.0),
        ("num_steps", " 7 ", 7),
        ("num_steps", "1e3", 1000),
        ("end_step", "None", None),
        ("end_step", "", None),
        ("only_nan", "True", True),
        ("only_nan", False, False),
        ("only_nan", "FALSE", False),
        ("collection_names", "a, b,", ["a", "b"]),
        ("collection_names", ["a", "b"], ["a", "b"]),
        ("tensor_regex", ".*relu, ^x", [".*relu", "^x"]),
        ("tensor_regex", r"a\d{1,2}x, b{3,},c", [r"a\d{1,2}x", "b{3,}", "c"]),
        ("mode", "eval", "EVAL"),
        ("mode", ModeKeys.TRAIN, "TRAIN"),
    ],
)
def test_converts(name: str, given: Any, value: Any) -> None:
    assert convert(**{name: given})[name] == value


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("threshold", "much", "a number from 0 to 1"),
        ("threshold", "nan", "a number from 0 to 1"),
        ("threshold", "1.5", "a number from 0 to 1"),
        ("threshold", None, "a number from 0 to 1"),
        ("num_steps", "2.5", "a whole number of at least 1"),
        ("num_steps", "0", "a whole number of at least 1"),
        ("num_steps", "inf", "a whole number of at least 1"),
        ("only_nan", "yes", "True or False"),
        ("collection_names", " , ", "names separated by commas"),
        ("tensor_regex", "(", "regular expressions"),
        ("mode", "PREDICT", "one of TRAIN, EVAL"),
    ],
)
def test_refuses_with_name_value_and_expectation(name: str, given: Any, expected: str) -> None:
    with pytest.raises(SMDebugValueError) as caught:
        convert(**{name: given})
    assert f"Rule MyRule: parameter {name} is {given!r}, expected {expected}" in str(caught.value)


def test_all_problems_in_one_message() -> None:
    with pytest.raises(
        SMDebugValueError, match=r"'treshold'.*num_steps is 'x'.*Its parameters are: threshold, num_steps"
    ):
        convert(treshold="1", num_steps="x")


def test_upper_bound_alone() -> None:
    declared: list[Parameter] = [number("p", 0, maximum=2)]
    with pytest.raises(SMDebugValueError, match="a number of at most 2"):
        convert_parameters("R", declared, {"p": 3})
