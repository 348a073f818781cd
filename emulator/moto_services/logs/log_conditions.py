"""Conditions in filter patterns of CloudWatch Logs, on JSON and on fields."""

import json
import logging
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import regex

from emulator.exceptions import LogPatternError

logger = logging.getLogger(__name__)

Matcher = Callable[[str], bool]
_Test = Callable[[Any], bool]

_TOKEN = re.compile(
    r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<regex>%[^%]+%)|(?P<sign>&&|\|\||!=|>=|<=|[()=<>,])'
    r'|(?P<word>[^\s"%&|()!=<>,]+))\s*'
)
_SELECTOR = re.compile(r"\$(?:\.[\w-]+|\[\d+\])+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# What brackets or double quotes enclose is one field.
_FIELD = re.compile(r'\[([^\]]*)\]|"([^"]*)"|(\S+)')
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_ELLIPSIS = "..."
# Each is a level of recursion, when a pattern is parsed and when a line is matched.
_MOST_PARENTHESES = 50
# A regular expression that backtracks excessively must not stop everything else.
_REGEX_SECONDS = 0.05
_ABSENT = object()


class _FieldText(str):
    """A field of a space-delimited event, which may be a number."""

    __slots__ = ()


class _Token(NamedTuple):
    kind: str | None
    text: str


class _Tokens:
    """The tokens of a pattern, and the next one."""

    def __init__(self, text: str) -> None:
        if text.count("(") > _MOST_PARENTHESES:
            raise LogPatternError(f"it has more than {_MOST_PARENTHESES} parentheses")
        self._tokens: list[_Token] = []
        self._next = position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise LogPatternError(f"Invalid character(s) in term '{text[position:].strip()}'")
            self._tokens.append(_Token(found.lastgroup, found[str(found.lastgroup)]))
            position = found.end()

    def take(self, *wanted: str) -> str | None:
        """Go on if the next token is one of the wanted signs or words; return it, else None."""
        token = self._peek()
        if token.text not in wanted or token.kind not in ("sign", "word"):
            return None
        self._next += 1
        return token.text

    def take_any(self, *kinds: str) -> _Token:
        """Return the next token, which must be of one of these kinds."""
        token = self._peek()
        if token.kind not in kinds:
            raise LogPatternError(f"there is {token.text!r} where a {' or '.join(kinds)} is expected")
        self._next += 1
        return token

    def ends_field(self) -> bool:
        return self.is_at_end() or self._peek() == _Token("sign", ",")

    def is_at_end(self) -> bool:
        return self._next == len(self._tokens)

    def _peek(self) -> _Token:
        return _Token(None, "the end") if self.is_at_end() else self._tokens[self._next]


def parse_json_pattern(text: str) -> Matcher:
    """Compile what a pattern has between ``{`` and ``}`` to a function that matches a JSON event.

    Raises:
        LogPatternError: it is not valid.
    """
    tokens = _Tokens(text)
    condition = _parse_any(tokens, _parse_selection)
    if not tokens.is_at_end():
        raise LogPatternError(f"{text.strip()!r} goes on after its condition")

    def matches(line: str) -> bool:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return condition(event)

    return matches


class SpacePattern:
    """What a pattern has between ``[`` and ``]``: a function that matches a space-delimited event."""

    def __init__(self, text: str) -> None:
        """Parse it.

        Raises:
            LogPatternError: it is not valid.
        """
        tokens = _Tokens(text)
        fields: list[tuple[str, _Test] | None] = []  # None: any number of fields
        while True:
            fields.append(None if tokens.take(_ELLIPSIS) else _parse_field(tokens))
            if tokens.is_at_end():
                break
            if tokens.take(",") is None:
                raise LogPatternError(f"{text.strip()!r}: its fields are separated by commas")
        if fields.count(None) > 1:
            raise LogPatternError(f"{text.strip()!r} has more than one {_ELLIPSIS}")
        self._at = fields.index(None) if None in fields else None
        self._fields = [field for field in fields if field is not None]

    def __call__(self, line: str) -> bool:
        """Return whether it matches a line."""
        found = self._split(line)
        return found is not None and all(test(found[at]) for at, (_, test) in enumerate(self._fields))

    def read_fields(self, line: str) -> dict[str, str]:
        """Return the fields of a line by their names; none if it has another number of fields."""
        return {name: value for (name, _), value in zip(self._fields, self._split(line) or (), strict=False)}

    def _split(self, line: str) -> list[_FieldText] | None:
        found = [_FieldText(each[each.lastindex or 0]) for each in _FIELD.finditer(line)]
        if self._at is not None and len(found) >= len(self._fields):
            after = len(self._fields) - self._at
            found = found[: self._at] + (found[-after:] if after else [])
        return found if len(found) == len(self._fields) else None


def read_selected(event: Any, selector: str) -> Any:
    """Return the value that a selector such as ``$.a.b[0]`` selects; None if there is none."""
    found = _select(event, selector)
    return None if found is _ABSENT else found


def build_text_test(wanted: str) -> Callable[[str], bool]:
    """Build a comparison with a text, in which ``*`` stands for any characters."""
    first, *rest = map(re.escape, wanted.split("*"))
    # Atomic groups: what lies between two asterisks is looked for once, not at each place where it may be.
    ends = [*(f"(?>.*?{part})" for part in rest[:-1]), *(f".*{part}" for part in rest[-1:])]
    expression = re.compile("".join([first, *ends]), re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def build_regex_test(expression: str) -> Callable[[str], bool]:
    """Build a search for a regular expression. A text for which the search takes too long does not match.

    Raises:
        LogPatternError: it is not valid.
    """
    try:
        compiled = regex.compile(expression)
    except regex.error as error:
        raise LogPatternError(f"the regular expression {expression!r} is not valid: {error}") from error

    def matches(text: str) -> bool:
        try:
            return compiled.search(text, timeout=_REGEX_SECONDS) is not None
        except TimeoutError:
            logger.warning(
                "The regular expression %s of a filter pattern takes too long: a line is left out.", expression
            )
            return False

    return matches


def _parse_any(tokens: _Tokens, parse_comparison: Callable[[_Tokens], _Test]) -> _Test:
    """Parse comparisons joined by ``||`` and, more tightly, by ``&&``, or in parentheses."""
    alternatives = [_parse_every(tokens, parse_comparison)]
    while tokens.take("||"):
        alternatives.append(_parse_every(tokens, parse_comparison))
    return lambda value: any(test(value) for test in alternatives)


def _parse_every(tokens: _Tokens, parse_comparison: Callable[[_Tokens], _Test]) -> _Test:
    every = []
    while True:
        if tokens.take("("):
            every.append(_parse_any(tokens, parse_comparison))
            if tokens.take(")") is None:
                raise LogPatternError("a parenthesis is not closed")
        else:
            every.append(parse_comparison(tokens))
        if tokens.take("&&") is None:
            return lambda value: all(test(value) for test in every)


def _parse_selection(tokens: _Tokens) -> _Test:
    """Parse ``$.field = value``, or another test of a field of a JSON event."""
    selector = tokens.take_any("word").text
    if _SELECTOR.fullmatch(selector) is None:
        raise LogPatternError(f"{selector!r} does not select a field, as $.field does")
    if tokens.take("IS"):
        named = tokens.take("NULL", "TRUE", "FALSE")
        if named is None:
            raise LogPatternError("IS is followed by NULL, TRUE or FALSE")
        constant = {"NULL": None, "TRUE": True, "FALSE": False}[named]
        return lambda event: _select(event, selector) is constant
    if tokens.take("NOT"):
        if tokens.take("EXISTS") is None:
            raise LogPatternError("NOT is followed by EXISTS")
        return lambda event: _select(event, selector) is _ABSENT
    test = _parse_test(tokens)

    def matches(event: Any) -> bool:
        found = _select(event, selector)
        return found is not _ABSENT and found is not None and test(found)

    return matches


def _parse_field(tokens: _Tokens) -> tuple[str, _Test]:
    """Parse a field of a space-delimited event: its name alone, or conditions that each begin with the name.

    Returns:
        The name, and a test of the field's value.
    """
    names: list[str] = []

    def parse_comparison(tokens: _Tokens) -> _Test:
        name = tokens.take_any("word").text
        names.append(name)
        if not re.fullmatch(r"\w+", name):
            raise LogPatternError(f"Invalid character(s) in term '{name}'")
        if tokens.ends_field():
            return lambda _: True
        return _parse_test(tokens)

    test = _parse_any(tokens, parse_comparison)
    return names[0], test


def _parse_test(tokens: _Tokens) -> _Test:
    """Parse an operator and a value."""
    sign = tokens.take_any("sign").text
    if sign not in _COMPARE:
        raise LogPatternError(f"{sign!r} is not one of the operators {' '.join(_COMPARE)}")
    compare, value = _COMPARE[sign], tokens.take_any("quoted", "regex", "word")
    if value.kind == "word" and _NUMBER.fullmatch(value.text):
        number = float(value.text)
        return lambda found: (known := _read_number(found)) is not None and compare(known, number)
    if sign not in ("=", "!="):
        raise LogPatternError(f"{value.text!r} is not a number: only numbers are more or less")
    is_like = (
        build_regex_test(value.text[1:-1])
        if value.kind == "regex"
        else build_text_test(unquote(value.text) if value.kind == "quoted" else value.text)
    )
    return lambda found: is_like(found if isinstance(found, str) else json.dumps(found)) is (sign == "=")


def unquote(text: str) -> str:
    """Return what is between double quotes, in which a backslash escapes the next character."""
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _read_number(found: Any) -> float | None:
    """Return the number that a value is, or that a field's text is; None otherwise."""
    if isinstance(found, _FieldText):
        return float(found) if _NUMBER.fullmatch(found) else None
    return None if isinstance(found, bool) or not isinstance(found, int | float) else found


def _select(event: Any, selector: str) -> Any:
    value = event
    for name, index in re.findall(r"\.([\w-]+)|\[(\d+)\]", selector):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else _ABSENT
        else:
            value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value
