"""Tests of numbers that are given as text."""

import pytest

from emulator.number_text import read_number


@pytest.mark.parametrize(
    ("text", "number"), [("2", 2), (" -.5e1 ", -5), ("+3.", 3), ("1E-3", 0.001), ("0", 0), ("007", 7)]
)
def test_decimal_numbers(text: str, number: float) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "2.3.0", "1_000", "inf", "-Infinity", "nan", "1e400", "0x1", "٣", "1e", ".", "1 2", None, 3]
)
def test_other_texts(text: object) -> None:
    assert read_number(text) is None
