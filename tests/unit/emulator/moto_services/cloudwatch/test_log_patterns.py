import pytest

from emulator.exceptions import LogPatternError
from emulator.moto_services.cloudwatch.log_patterns import parse_log_pattern

JSON = '{"level": "error", "loss": 2.5, "tags": [{"name": "x y"}], "flag": true}'


@pytest.mark.parametrize(
    ("pattern", "line", "matched"),
    [
        ("", "anything", True),
        ("ERROR", "an ERROR", True),
        ("ERROR", "an error", False),
        ("ERROR loss", "loss: ERROR", True),
        ("ERROR loss", "ERROR", False),
        ('"two words"', "just two words", True),
        ('"two words"', "words two", False),
        ('"a \\"quote\\""', 'a "quote"', True),
        ("loss -nan", "loss=1", True),
        ("loss -nan", "loss=nan", False),
        ("?a ?b", "xbx", True),
        ("?a ?b", "xyz", False),
        ("%loss=[0-9]{3,}%", "loss=1234", True),
        ("%loss=[0-9]{3,}%", "loss=12", False),
        ("{ $.loss > 2 }", JSON, True),
        ("{ $.loss >= 2.6 }", JSON, False),
        ('{ $.level = "err*" && $.loss != 3 }', JSON, True),
        ('{ $.level = "warn" || $.tags[0].name = "x y" }', JSON, True),
        ("{ $.flag = true }", JSON, True),
        ("{ $.flag > 0 }", JSON, False),
        ("{ $.missing != 3 }", JSON, False),
        ("{ $.loss > 2 }", "no JSON", False),
    ],
)
def test_pattern(pattern: str, line: str, matched: bool) -> None:
    assert parse_log_pattern(pattern)(line) is matched


@pytest.mark.parametrize(
    "pattern", ["[ip, user]", "{ $.a IS NULL }", "{ loss > 2 }", '{ $.a > "b" }', '"open', "%[%", "{ $.a = 1"]
)
def test_pattern_that_cannot_be_matched_is_refused(pattern: str) -> None:
    with pytest.raises(LogPatternError, match="Invalid metric filter pattern"):
        parse_log_pattern(pattern)
