"""AlarmRule expressions of composite alarms: parser and evaluation.

Pure functions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Condition = Callable[[Mapping[str, str]], bool]

STATES = ("ALARM", "OK", "INSUFFICIENT_DATA")
# AWS's limits: the number of children, and the number of children, constants and parentheses together.
_MAX_CHILDREN, _MAX_ELEMENTS = 100, 500
_TOKEN = re.compile(r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<mark>[(),])|(?P<word>[^\s(),"]+))')


class AlarmRuleError(Exception):
    """The text is not a valid AlarmRule; the message is CloudWatch's reason."""


class AlarmRule(NamedTuple):
    """A parsed rule.

    Attributes:
        children: the names and ARNs of the alarms in the rule, without duplicates.
        holds: returns whether the rule is true, given the state of each child. A child without a state is in no state.
    """

    children: tuple[str, ...]
    holds: Condition


@lru_cache(maxsize=256)
def parse_alarm_rule(text: str) -> AlarmRule:
    """Parse a rule. NOT has precedence over AND, and AND has precedence over OR.

    >>> rule = parse_alarm_rule('ALARM(loss) AND NOT (OK("disk full") OR FALSE)')
    >>> rule.children
    ('loss', 'disk full')
    >>> rule.holds({"loss": "ALARM", "disk full": "INSUFFICIENT_DATA"})
    True

    Raises:
        AlarmRuleError: the rule has a syntax error (the message names the first invalid token), or it exceeds a limit.
    """
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise AlarmRuleError("Error in AlarmRule [its brackets are nested too deeply]") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        self._children: dict[str, None] = {}
        self._elements = position = 0
        self._at = 0
        while rest := text[position:].lstrip():
            start = len(text) - len(rest)
            found = _TOKEN.match(text, position)
            if found is None:
                raise AlarmRuleError(f"Error in AlarmRule [Unsupported token '{rest[0]}' at char {start}]")
            self._tokens.append((found[0].strip(), start))
            position = found.end()
        self._tokens.append(("", len(text)))

    def parse(self) -> AlarmRule:
        condition = self._parse_any()
        self._next("")
        for what, count, most in (
            ("alarms", len(self._children), _MAX_CHILDREN),
            ("elements", self._elements, _MAX_ELEMENTS),
        ):
            if count > most:
                raise AlarmRuleError(f"Error in AlarmRule [it has {count} {what}; at most {most} are allowed]")
        return AlarmRule(tuple(self._children), condition)

    def _parse_any(self) -> Condition:
        conditions = [self._parse_all()]
        while self._take("OR"):
            conditions.append(self._parse_all())
        return lambda states: any(holds(states) for holds in conditions)

    def _parse_all(self) -> Condition:
        conditions = [self._parse_one()]
        while self._take("AND"):
            conditions.append(self._parse_one())
        return lambda states: all(holds(states) for holds in conditions)

    def _parse_one(self) -> Condition:
        wanted = True
        while self._take("NOT"):
            wanted = not wanted
        self._elements += 1
        if self._take("("):
            inner = self._parse_any()
            self._next(")")
            return lambda states: inner(states) is wanted
        if self._take("AT_LEAST"):
            counted = self._parse_at_least()
            return lambda states: counted(states) is wanted
        token = self._next("TRUE", "FALSE", *STATES)
        if token not in STATES:
            return lambda _: (token == "TRUE") is wanted  # noqa: S105 - a word of the rule
        self._next("(")
        child = self._parse_child()
        self._next(")")
        return lambda states: (states.get(child) == token) is wanted

    def _parse_at_least(self) -> Condition:
        """Parse the rest of ``AT_LEAST(2, NOT OK, (one, two, three))``. The number may be a percentage such as 60%."""
        self._next("(")
        number = self._next()
        count = number.removesuffix("%")
        if not count.isdecimal() or int(count) < 1:
            self._refuse()
        self._next(",")
        wanted = not self._take("NOT")
        state = self._next(*STATES)
        self._next(",")
        self._next("(")
        children = [self._parse_child()]
        while self._take(","):
            children.append(self._parse_child())
        self._next(")")
        self._next(")")
        needed = int(count) * len(children) / 100 if number.endswith("%") else int(count)
        return lambda states: sum((states.get(child) == state) is wanted for child in children) >= needed

    def _parse_child(self) -> str:
        token = self._tokens[self._at][0]
        self._at += 1
        if token in ("", "(", ")", ","):
            self._refuse()
        child = re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token
        self._children[child] = None
        return child

    def _take(self, token: str) -> bool:
        taken = self._tokens[self._at][0].upper() == token
        self._at += taken
        return taken

    def _next(self, *allowed: str) -> str:
        token = self._tokens[self._at][0].upper()
        self._at += 1
        if allowed and token not in allowed:
            self._refuse()
        return token

    def _refuse(self) -> None:
        """Raise AlarmRuleError for the token that was read last."""
        token, start = self._tokens[self._at - 1]
        if not token:
            raise AlarmRuleError(f"Error in AlarmRule [Unexpected end at char {start}]")
        raise AlarmRuleError(f"Error in AlarmRule [Unsupported token '{token}' at char {start}]")
