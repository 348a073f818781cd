"""Filter patterns of CloudWatch Logs: parser and matching."""

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from emulator.exceptions import LogPatternError

_TERM = re.compile(r'\s*(?P<sign>[-?]?)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|%(?P<regex>[^%]+)%|(?P<word>[^\s"%]+))')
_COMPARISON = re.compile(
    r'\s*\$\.(?P<path>[\w.\[\]-]+)\s*(?P<operator>!=|>=|<=|=|>|<)\s*(?:"(?P<text>[^"]*)"|(?P<word>[^\s"&|()]+))\s*'
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def parse_log_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a function that matches a line.

    A pattern consists of terms (``ERROR -debug ?a ?b "two words" %regex%``), or of comparisons of the fields of a JSON
    line (``{ $.field = value }``).

    >>> [parse_log_pattern('ERROR -debug')(line) for line in ("ERROR here", "ERROR debug", "fine")]
    [True, False, False]
    >>> parse_log_pattern('{ $.a.b > 2 && $.c = "x*" }')('{"a": {"b": 3}, "c": "xyz"}')
    True

    Raises:
        LogPatternError: the pattern is not valid, or of a kind that is not supported here.
    """
    text = pattern.strip()
    if text.startswith("{") and text.endswith("}"):
        return _parse_json_pattern(text[1:-1])
    if text.startswith(("{", "[")):
        raise LogPatternError(
            f"Invalid metric filter pattern: {pattern!r}. This emulator matches terms and {{ $.field = value }} "
            "joined by && or ||, not space-delimited fields."
        )
    signs: dict[str, list[Callable[[str], bool]]] = {"": [], "?": [], "-": []}
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise LogPatternError(
                f"Invalid metric filter pattern: {pattern!r} cannot be read from {text[position:]!r} on."
            )
        position = term.end()
        signs[term["sign"]].append(_build_term(term))
    return lambda line: (
        all(matches(line) for matches in signs[""])
        and not any(matches(line) for matches in signs["-"])
        and (not signs["?"] or bool(signs[""]) or any(matches(line) for matches in signs["?"]))
    )


def read_field(line: str, selector: str) -> Any:
    """Return the value of a JSON line that a selector such as ``$.a.b[0]`` selects; None if there is none."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", selector.removeprefix("$.")):
        if isinstance(value, list) and index:
            value = value[int(index)] if int(index) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _build_term(term: re.Match[str]) -> Callable[[str], bool]:
    if term["regex"] is not None:
        try:
            expression = re.compile(term["regex"])
        except re.error as error:
            raise LogPatternError(f"Invalid metric filter pattern: {term['regex']!r}: {error}.") from error
        return lambda line: expression.search(line) is not None
    word = term["word"] if term["quoted"] is None else re.sub(r"\\(.)", r"\1", term["quoted"])
    return lambda line: word in line


def _parse_json_pattern(text: str) -> Callable[[str], bool]:
    alternatives = [[_parse_comparison(each) for each in part.split("&&")] for part in text.split("||")]
    return lambda line: any(all(matches(line) for matches in every) for every in alternatives)


def _parse_comparison(text: str) -> Callable[[str], bool]:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise LogPatternError(
            f"Invalid metric filter pattern: {text.strip()!r} is not a comparison of $.field with a value."
        )
    path, compare, wanted = found["path"], _COMPARE[found["operator"]], found["text"]
    if wanted is None:
        wanted = found["word"]
        try:
            number = float(wanted)
        except ValueError:
            pass
        else:
            return lambda line: _is_number(value := read_field(line, path)) and compare(value, number)
    if found["operator"] not in ("=", "!="):
        raise LogPatternError(f"Invalid metric filter pattern: {text.strip()!r}: only numbers are more or less.")
    expression = re.compile(".*".join(map(re.escape, wanted.split("*"))))
    return lambda line: (
        (value := read_field(line, path)) is not None
        and (expression.fullmatch(value if isinstance(value, str) else json.dumps(value)) is not None)
        == (found["operator"] == "=")
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
