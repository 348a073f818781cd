"""Filter patterns of CloudWatch Logs: parser and matching."""

import json
import re
from typing import Any

from emulator.exceptions import LogPatternError
from emulator.moto_services.logs.log_conditions import (
    Matcher,
    SpacePattern,
    build_regex_test,
    parse_json_pattern,
    read_selected,
    unquote,
)

_TERM = re.compile(r'\s*(?P<sign>[-?]?)(?:(?P<quoted>"(?:[^"\\]|\\.)+")|%(?P<regex>[^%]+)%|(?P<word>\w+))(?=\s|$)')


def parse_log_pattern(pattern: str) -> Matcher:
    """Compile a pattern to a function that matches a line.

    A pattern consists of terms (``ERROR -debug ?a ?b "two words" %regex%``), of comparisons of the fields of a JSON
    line (``{ $.field = value }``), or of the fields of a space-delimited line (``[ip, user, status = 4*, ...]``).

    >>> [parse_log_pattern('ERROR -debug')(line) for line in ("ERROR here", "ERROR debug", "fine")]
    [True, False, False]
    >>> parse_log_pattern('{ $.a.b > 2 && $.c = "x*" }')('{"a": {"b": 3}, "c": "xyz"}')
    True
    >>> parse_log_pattern('[ip, ..., status = 4*]')('10.0.0.1 - "GET /" 404')
    True

    Raises:
        LogPatternError: the pattern is not valid.
    """
    text = pattern.strip()
    for begin, end, parse in (("{", "}", parse_json_pattern), ("[", "]", SpacePattern)):
        if text.startswith(begin):
            if not text.endswith(end):
                raise LogPatternError(f"{begin} is not closed by {end}")
            return parse(text[1:-1])
    signs: dict[str, list[Matcher]] = {"": [], "?": [], "-": []}
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            # AWS's words: a term of other characters than letters, digits and underscores stands in double quotes.
            raise LogPatternError(f"Invalid character(s) in term '{text[position:].split()[0]}'")
        position = term.end()
        signs[term["sign"]].append(_build_term(term))
    return lambda line: (
        all(matches(line) for matches in signs[""])
        and not any(matches(line) for matches in signs["-"])
        and (not signs["?"] or bool(signs[""]) or any(matches(line) for matches in signs["?"]))
    )


def read_field(matches: Matcher, line: str, selector: str) -> Any:
    """Return the value that a selector selects of a line; None if there is none.

    Args:
        matches: the parsed pattern.
        line: the line, which it matches.
        selector: ``$.a.b[0]`` of a JSON line, or ``$name`` of a field that a space-delimited pattern names.
    """
    if isinstance(matches, SpacePattern):
        return matches.read_fields(line).get(selector.removeprefix("$"))
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return read_selected(event, selector)


def _build_term(term: re.Match[str]) -> Matcher:
    if term["regex"] is not None:
        return build_regex_test(term["regex"])
    word = term["word"] if term["quoted"] is None else unquote(term["quoted"])
    return lambda line: word in line
