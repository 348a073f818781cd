"""Requests generated from botocore's shapes: valid ones, and faulty ones.

A faulty one has one thing wrong, and AWS's words for it.

Nothing here knows the gateway's schemas: the words are put together a second time, from the shapes themselves.
"""

import copy
import importlib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from botocore.model import ListShape, MapShape, Shape, StructureShape

from emulator.gateway.request_schema import compile_pattern

Path = tuple[str | int, ...]

MISSING: Any = object()
_ALPHABET = string.ascii_letters + string.digits + string.punctuation + " \n"
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
# What a pattern is held against to find a string that it refuses.
_ODD_TEXTS = ("!", "~", " ", "-", "\n", "ä", "a")
_TOO_MANY = 20_000
_WIDTHS = {"integer": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_NUMBERS = ("integer", "long", "float", "double")
_JAVA_NAMES = {"integer": "an Integer", "long": "an Integer", "float": "a Double", "double": "a Double"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request.

    Attributes:
        path: of the member that is replaced.
        value: what it becomes, ``MISSING`` where it is taken away.
        code: of AWS's error.
        words: what the error's message has to hold.
    """

    path: Path
    value: Any
    code: str
    words: str

    def apply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Copy the request, with this wrong."""
        return replace_member(request, self.path, self.value)


def replace_member(request: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Copy a request with another value at ``path``."""
    copied: Any = copy.deepcopy(request)
    inner = copied
    for part in path[:-1]:
        inner = inner[part]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return cast("dict[str, Any]", copied)


def build_request(shape: Shape, random: Random, *, full: bool) -> Any:
    """Build a request that keeps to the model: with its required members only, or ``full`` with all of them.

    Of a union one member is there; a shape inside of itself is left out.
    """
    return _build(shape, random, full, ())


def _build(shape: Shape, random: Random, full: bool, inside: tuple[str, ...]) -> Any:
    match shape.type_name:
        case "structure":
            structure = cast("StructureShape", shape)
            names = [
                name
                for name, member in structure.members.items()
                if name in structure.required_members or (full and not _reaches(member, (*inside, shape.name)))
            ]
            if structure.is_tagged_union and full:
                names = [random.choice(names)]
            return {name: _build(structure.members[name], random, full, (*inside, shape.name)) for name in names}
        case "list":
            member = cast("ListShape", shape).member
            count = max(shape.metadata.get("min", 0), int(full))
            return [_build(member, random, full, inside) for _ in range(count)]
        case "map":
            mapping = cast("MapShape", shape)
            count = max(shape.metadata.get("min", 0), int(full))
            return {build_text(mapping.key, random): _build(mapping.value, random, full, inside) for _ in range(count)}
        case "boolean":
            return random.random() < 0.5
        case "timestamp":
            return 1_700_000_000 + random.randrange(1000)
        case "blob":
            return "YQ=="
        case type_name if type_name in _NUMBERS:
            low, high = _read_range(shape)
            return random.choice([low or 0, high or 9, max(low or 0, min(high or 9, 1))])
        case _:
            return build_text(shape, random)


def _reaches(shape: Shape, inside: tuple[str, ...]) -> bool:
    while shape.type_name == "list":
        shape = cast("ListShape", shape).member
    return shape.name in inside


def build_text(shape: Shape, random: Random) -> str:
    """Build a string that keeps to the shape's enum, pattern and lengths."""
    metadata = shape.metadata
    if metadata.get("enum"):
        return random.choice(list(metadata["enum"]))
    least, most = metadata.get("min", 0), metadata.get("max", 200)
    pattern = metadata.get("pattern")
    if not pattern:
        return "a" * min(most, max(least, random.randrange(1, 9)))
    for attempt in range(2000):
        text = _spell(_parse_pattern(pattern), random, 1 + attempt // 20)
        if least <= len(text) <= most and (text or attempt > 100) and compile_pattern(pattern).fullmatch(text):
            return text
    raise AssertionError(f"no string of {least} to {most} characters was found for {pattern}")


def _parse_pattern(pattern: str) -> Any:
    """Parse it with ``re``, whose parser knows neither Unicode's properties nor Java's pairs."""
    plain = re.sub(r"\$\{\d+,\d+\}", "$", pattern)  # an end of the line that is repeated
    plain = plain.replace(r"\uD800\uDC00-\uDBFF\uDFFF", "").replace(r"\p{Alnum}", "a-z0-9")
    for name, stands_for in (("L", "a-z"), ("N", "0-9"), ("Z", " "), ("P", "."), ("S", "+"), ("M", "a")):
        plain = plain.replace(rf"\p{{{name}}}", stands_for)
    parser: Any = importlib.import_module("re._parser")
    return parser.parse(plain)


def _spell(tree: Any, random: Random, most: int) -> str:
    return "".join(_spell_part(str(kind), argument, random, most) for kind, argument in tree)


def _spell_part(kind: str, argument: Any, random: Random, most: int) -> str:
    match kind:
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "b" if argument == ord("a") else "a"
        case "ANY":
            return "x"
        case "IN":
            return random.choice([each for each in _ALPHABET if _is_in(argument, each)])
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = argument
            count = random.randint(low, max(low, min(int(high), low + most)))
            return "".join(_spell(inner, random, most) for _ in range(count))
        case "SUBPATTERN":
            return _spell(argument[3], random, most)
        case "BRANCH":
            return _spell(random.choice(argument[1]), random, most)
        case _:  # what has no width
            return ""


def _is_in(items: Any, character: str) -> bool:
    found, negated = False, False
    for kind, argument in items:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found |= ord(character) == argument
            case "RANGE":
                found |= argument[0] <= ord(character) <= argument[1]
            case "CATEGORY":
                found |= re.match(_CATEGORIES[str(argument)], character) is not None
    return found != negated


def find_edges(shape: Shape, value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value at the edge of what a member of a full request may have: enums, bounds, and a member unknown."""
    metadata = shape.metadata
    if metadata.get("enum"):
        yield from ((path, metadata["enum"][place]) for place in (0, -1))
    elif shape.type_name in _NUMBERS:
        yield from ((path, bound) for bound in _read_range(shape) if bound is not None)
    elif shape.type_name == "string" and not metadata.get("pattern") and metadata.get("max", 0) <= _TOO_MANY:
        yield from ((path, "a" * metadata[name]) for name in ("min", "max") if name in metadata)
    elif shape.type_name == "structure" and not cast("StructureShape", shape).is_document_type:
        yield (*path, "InventedLater"), {"A": [1]}
    for inner, entry, where in _walk(shape, value, path):
        yield from find_edges(inner, entry, where)


def find_violations(shape: Shape, value: Any, path: Path = (), container: str = "") -> Iterator[Violation]:
    """Everything that can be wrong with one member of a full request.

    Args:
        shape: of the value.
        value: a full request, or the member of one at ``path``.
        path: where it is.
        container: ``list`` or ``map`` where the value is an entry of one: AWS then speaks of the whole.
    """
    if path:
        yield from _find_wrong_types(shape, path)
        told, prefix, suffix = (path, "", "")
        if container and shape.type_name in ("string", *_NUMBERS):
            told = path[:-1]
            prefix, suffix = ("Member" if container == "list" else "Map value") + " must satisfy constraint: [", "]"
        everything = ", ".join(spell_constraints(shape))
        for bad, constraint in _find_wrong_values(shape, value):
            words = f"{prefix}{everything}{suffix}" if prefix else constraint
            yield Violation(
                path, bad, "ValidationException", f" at '{spell_path(told)}' failed to satisfy constraint: {words}"
            )
    if shape.type_name == "structure":
        for name in cast("StructureShape", shape).required_members:
            where = spell_path((*path, name))
            words = f"Value null at '{where}' failed to satisfy constraint: Member must not be null"
            yield Violation((*path, name), MISSING, "ValidationException", words)
    for inner, entry, where_to in _walk(shape, value, path):
        kind = shape.type_name if shape.type_name in ("list", "map") else ""
        yield from find_violations(inner, entry, where_to, kind)


def _walk(shape: Shape, value: Any, path: Path) -> Iterator[tuple[Shape, Any, Path]]:
    match shape.type_name:
        case "structure":
            members = cast("StructureShape", shape).members
            yield from ((members[name], entry, (*path, name)) for name, entry in value.items())
        case "list":
            yield from ((cast("ListShape", shape).member, entry, (*path, i)) for i, entry in enumerate(value[:1]))
        case "map":
            yield from ((cast("MapShape", shape).value, entry, (*path, key)) for key, entry in value.items())


def _find_wrong_types(shape: Shape, path: Path) -> Iterator[Violation]:
    where = f"(at '{spell_path(path)}')"
    structure, sequence = "Start of structure or map found", "Start of list found"
    wrong: dict[str, list[tuple[Any, str]]] = {
        "structure": [([], sequence), ("x", "STRING_VALUE can not be converted to a Map")],
        "map": [([], sequence), (1, "NUMBER_VALUE can not be converted to a Map")],
        "list": [({}, structure), ("x", "STRING_VALUE can not be converted to a List")],
        "string": [({}, structure), ([], sequence), (1, "NUMBER_VALUE can not be converted to a String")],
        "boolean": [({}, structure), ("true", "STRING_VALUE can not be converted to a Boolean")],
        "timestamp": [({}, structure), ("now", "STRING_VALUE can not be converted to a Double")],
    }
    if name := _JAVA_NAMES.get(shape.type_name):
        texts = [("1", f"STRING_VALUE can not be converted to {name}")]
        wrong[shape.type_name] = [({}, structure), (True, f"TRUE_VALUE can not be converted to {name}"), *texts]
    if shape.type_name == "structure" and cast("StructureShape", shape).is_document_type:
        return
    for value, words in wrong.get(shape.type_name, []):
        said = f"{words} where not expected." if words.startswith("Start") else words
        yield Violation(path, value, "SerializationException", f"{said} {where}")


def _find_wrong_values(shape: Shape, value: Any) -> Iterator[tuple[Any, str]]:
    metadata = shape.metadata
    if shape.type_name in _NUMBERS:
        low, high = _read_range(shape)
        if low is not None:
            yield low - 1, f"Member must have value greater than or equal to {low}"
        if high is not None:
            yield high + 1, f"Member must have value less than or equal to {high}"
    elif shape.type_name in ("string", "list", "map"):
        least, most = metadata.get("min", 0), metadata.get("max", _TOO_MANY)
        if least:
            yield type(value)(), f"Member must have length greater than or equal to {least}"
        if most < _TOO_MANY:
            yield _lengthen(value, most + 1), f"Member must have length less than or equal to {most}"
        if metadata.get("enum"):
            yield "no-such-value", f"Member must satisfy enum value set: [{', '.join(metadata['enum'])}]"
        if pattern := metadata.get("pattern"):
            refused = (text * max(least, 1) for text in _ODD_TEXTS)
            for text in (each for each in refused if not compile_pattern(pattern).fullmatch(each)):
                yield text, f"Member must satisfy regular expression pattern: {pattern}"
                break


def _lengthen(value: Any, length: int) -> Any:
    match value:
        case str():
            return "a" * length
        case list():
            return (value or [""]) * length
        case _:
            entry = next(iter(value.values()), "")
            return {f"k{number}": entry for number in range(length)}


def spell_constraints(shape: Shape) -> list[str]:
    """AWS's words for all that a string or number of this shape has to keep to, in AWS's order."""
    metadata, found = shape.metadata, []
    low, high = _read_range(shape) if shape.type_name in _NUMBERS else (metadata.get("min"), metadata.get("max"))
    measured = "value" if shape.type_name in _NUMBERS else "length"
    if high is not None:
        found.append(f"Member must have {measured} less than or equal to {high}")
    if low is not None:
        found.append(f"Member must have {measured} greater than or equal to {low}")
    if metadata.get("enum"):
        found.append(f"Member must satisfy enum value set: [{', '.join(metadata['enum'])}]")
    if metadata.get("pattern"):
        found.append(f"Member must satisfy regular expression pattern: {metadata['pattern']}")
    return found


def spell_path(path: Path) -> str:
    """Spell where a member is, as AWS does: ``tags.1.member.key``."""
    return ".".join(f"{part + 1}.member" if isinstance(part, int) else part[:1].lower() + part[1:] for part in path)


def _read_range(shape: Shape) -> tuple[Any, Any]:
    low, high = _WIDTHS.get(shape.type_name, (None, None))
    return shape.metadata.get("min", low), shape.metadata.get("max", high)
