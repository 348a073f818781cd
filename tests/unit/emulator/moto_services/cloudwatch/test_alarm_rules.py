"""Tests of AlarmRule expressions: evaluation and invalid ones."""

import pytest

from emulator.moto_services.cloudwatch.alarm_rules import AlarmRuleError, parse_alarm_rule

STATES = {"a": "ALARM", "b": "OK", "c": "INSUFFICIENT_DATA", 'say "no" (x)': "ALARM"}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("TRUE", True),
        ("false", False),
        ("ALARM(a)", True),
        ('OK("a")', False),
        ("INSUFFICIENT_DATA( c )", True),
        ("NOT NOT ALARM(a)", True),
        ("NOT ALARM(a) OR OK(b)", True),
        ("ALARM(a) OR ALARM(b) AND FALSE", True),
        ("(ALARM(a) OR ALARM(b)) AND FALSE", False),
        ("NOT (ALARM(a) AND OK(b))", False),
        (r'ALARM("say \"no\" (x)")', True),
        ("ALARM(d) OR OK(d) OR INSUFFICIENT_DATA(d)", False),
        ("AT_LEAST(2, ALARM, (a, b, c))", False),
        ("AT_LEAST(2, NOT ALARM, (a, b, c))", True),
        ("AT_LEAST(33%, OK, (a, b, c))", True),
        ("AT_LEAST(34%, OK, (a, b, c))", False),
        ("NOT AT_LEAST(1, OK, (a))", True),
    ],
)
def test_rule_is_computed_of_states(rule: str, holds: bool) -> None:
    assert parse_alarm_rule(rule).holds(STATES) is holds


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("", "Unexpected end at char 0"),
        ("ALARM", "Unexpected end at char 5"),
        ("a", "Unsupported token 'a' at char 0"),
        ("ALARM()", "Unsupported token ')' at char 6"),
        ("ALARM(a) AND", "Unexpected end at char 12"),
        ('ALARM("a)', "Unsupported token '\"' at char 6"),
        ("ALARM(my alarm)", "Unsupported token 'alarm' at char 9"),
        ("AT_LEAST(0, OK, (a))", "Unsupported token '0' at char 9"),
        ("AT_LEAST(1, MAYBE, (a))", "Unsupported token 'MAYBE' at char 12"),
        (" OR ".join(f"OK(a{number})" for number in range(101)), "it has 101 alarms; at most 100"),
        (" OR ".join(["TRUE"] * 501), "it has 501 elements; at most 500"),
    ],
)
def test_what_is_not_a_rule_is_refused_with_its_place(rule: str, said: str) -> None:
    with pytest.raises(AlarmRuleError) as refused:
        parse_alarm_rule(rule)
    assert said in str(refused.value)
