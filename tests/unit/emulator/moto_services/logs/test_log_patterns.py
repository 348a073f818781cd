import json

import pytest

from emulator.exceptions import LogPatternError
from emulator.moto_services.logs.log_patterns import parse_log_pattern

JSON = '{"level": "error", "loss": 2.5, "tags": [{"name": "x y"}], "flag": true}'
ACCESS = '10.0.0.1 - "GET /index.html HTTP/1.1" 404'


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
        ("{ $.loss > 2 }", "[" * 100_000, False),
        ("{ $.loss = 2.5e0 }", JSON, True),
        ('{ $.loss = "2.5" }', JSON, True),
        ("{ $.level = %^err% }", JSON, True),
        ("{ $.level != %^err% }", JSON, False),
        ("{ $.none IS NULL }", '{"none": null}', True),
        ("{ $.none IS NULL }", "{}", False),
        ("{ $.flag IS TRUE }", JSON, True),
        ("{ $.flag IS FALSE }", JSON, False),
        ("{ $.missing NOT EXISTS }", JSON, True),
        ("{ $.flag NOT EXISTS }", JSON, False),
        ("{ $.tags[1].name NOT EXISTS }", JSON, True),
        ('{ $.level = "a && b" }', '{"level": "a && b"}', True),
        ('{ ($.loss > 2 || $.loss < 1) && ($.level = "warn") }', JSON, False),
        ('{ $.loss > 9 && $.flag IS TRUE || $.level = "error" }', JSON, True),
        ("[ip, user, request, status]", ACCESS, True),
        ("[ip, user, request]", ACCESS, False),
        ("[ip, user, request, status = 4*]", ACCESS, True),
        ("[ip, user, request, status > 404]", ACCESS, False),
        ("[ip, user, request = *.html*, status = 404 || status = 410]", ACCESS, True),
        ("[ip != 10.* , user, request, status]", ACCESS, False),
        ("[ip, ..., status >= 400 && status < 500]", ACCESS, True),
        ("[..., status = 200]", ACCESS, False),
        ("[ip = %^10%, ...]", ACCESS, True),
        ("[a, b, c, d, e, ...]", ACCESS, False),
        ("[time, level]", "[10/Oct 13:25] WARN", True),
        ('[time = "10/Oct 13:25", level]', "[10/Oct 13:25] WARN", True),
    ],
)
def test_pattern(pattern: str, line: str, matched: bool) -> None:
    assert parse_log_pattern(pattern)(line) is matched


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("{ loss > 2 }", "does not select a field"),
        ('{ $.a > "b" }', "is not a number"),
        ("{ $.a = 1", "is not closed"),
        ("{ $.a = }", "the end"),
        ("{ ($.a = 1 }", "parenthesis"),
        ("{ $.a = 1) }", "goes on"),
        ("{ $.a IS nothing }", "NULL, TRUE or FALSE"),
        ("{ $.a NOT HERE }", "EXISTS"),
        ("{ $.a && $.b }", "operator"),
        ("{ $.a = %[% }", "regular expression"),
        ("{}", "the end"),
        ("{ " + "(" * 400 + "$.a = 1" + ")" * 400 + " }", "more than 50 parentheses"),
        ("[ip, user", "is not closed"),
        ("[]", "the end"),
        ("[ip user]", "operator|expected"),
        ("[ip, ..., user, ...]", "more than one"),
        ("[i-p]", r"Invalid character\(s\) in term"),
        ('"open', r"Invalid character\(s\) in term '\"open'"),
        ('""', r"Invalid character\(s\) in term"),
        ("loss=1", r"Invalid character\(s\) in term 'loss=1'"),
        ("%[%", "regular expression"),
    ],
)
def test_pattern_that_is_not_valid_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(LogPatternError, match=reason):
        parse_log_pattern(pattern)


@pytest.mark.parametrize("pattern", ["%(a+)+b%", "{ $.text = %(a+)+b% }", '{ $.text = "' + "a*" * 30 + 'b" }'])
def test_a_pattern_that_backtracks_excessively_does_not_match(pattern: str) -> None:
    line = json.dumps({"text": "a" * 2000})
    assert not parse_log_pattern(pattern)(line)  # or it would take years
