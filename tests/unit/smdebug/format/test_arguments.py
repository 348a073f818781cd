"""Tests of values, names and modes that may be saved."""

from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.format.arguments import check_mode, check_name, get_texts, make_numpy_array
from smdebug.mode_keys import ModeKeys


@pytest.mark.parametrize("value", [True, 3, 1.5, 2j, "text", np.float32(1.5)])
def test_a_single_value_becomes_an_array_of_one(value: object) -> None:
    array = make_numpy_array(value)
    assert (array.shape, array.tolist()) == ((1,), [value])


def test_arrays_are_taken_as_they_are_and_lists_converted() -> None:
    array = np.array(3.0)
    assert make_numpy_array(array) is array
    assert make_numpy_array([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert make_numpy_array((1.5,)).tolist() == [1.5]


@pytest.mark.parametrize(
    ("value", "said"), [([[1], [1, 2]], "elements differ in length"), ({}, "type dict cannot"), (None, "type NoneType")]
)
def test_what_is_no_value_is_refused(value: object, said: str) -> None:
    with pytest.raises(SMDebugTypeError, match=said):
        make_numpy_array(value)


@pytest.mark.parametrize("name", ["", None, 3, b"loss"])
def test_a_name_is_a_text_that_is_not_empty(name: object) -> None:
    with pytest.raises(SMDebugTypeError, match="a text of at least one character, not"):
        check_name(name)


def test_modes_are_members_of_modes() -> None:
    check_name("a")
    assert check_mode(ModeKeys.EVAL) is ModeKeys.EVAL
    with pytest.raises(SMDebugValueError, match=r"'TRAIN' is not a mode: use one of modes\.TRAIN, modes\.EVAL"):
        check_mode("TRAIN")


def test_text_is_saved_in_one_dimension_and_no_other_objects() -> None:
    assert get_texts(np.array(["a", "b"])) == ["a", "b"]
    assert get_texts(np.array(["a", "b"], object)) == ["a", "b"]
    assert get_texts(np.array([1.5])) is None
    refused: list[Any] = [[["a"]], ["a", 1], [None]]
    for values in refused:
        with pytest.raises(SMDebugTypeError, match="one-dimensional arrays of text can be saved, and no other objects"):
            get_texts(np.array(values, object))
