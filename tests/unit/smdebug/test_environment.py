"""Tests of numbers set by environment variables."""

import pytest

from smdebug.environment import read_number
from smdebug.exceptions import SMDebugValueError

VARIABLE = "SMDEBUG_SOME_NUMBER"


@pytest.mark.parametrize(("text", "number"), [(None, 3), ("0", 0), (" 2.5 ", 2.5), ("1e3", 1000)])
def test_numbers(monkeypatch: pytest.MonkeyPatch, text: str | None, number: float) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    assert read_number(VARIABLE, 3) == number


@pytest.mark.parametrize("text", ["soon", "", " ", "1,5", "nan", "inf", "-inf"])
def test_what_is_not_a_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(SMDebugValueError, match=f"^{VARIABLE} must be a number, not '{text}'; unset, it is 3[.]$"):
        read_number(VARIABLE, 3)
