"""JSON Schemas of requests, compiled from the service model's shapes.

A schema contains what ``jsonschema`` can check: types, required members, lengths, ranges, enums and patterns, also for
the keys and values of maps. Unknown members are accepted: a client may be newer than the botocore of this process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from botocore.model import ListShape, MapShape, Shape, StructureShape
    from jsonschema.protocols import Validator

Schema = dict[str, Any]

_SCALAR_TYPES = {
    "string": "string",
    "character": "string",
    "blob": "string",
    "boolean": "boolean",
    "integer": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "timestamp": "number",
}
_BOUNDS = {
    "string": ("minLength", "maxLength"),
    "list": ("minItems", "maxItems"),
    "map": ("minProperties", "maxProperties"),
    "integer": ("minimum", "maximum"),
    "long": ("minimum", "maximum"),
    "float": ("minimum", "maximum"),
    "double": ("minimum", "maximum"),
}
# The bounds of an integer's type, for integers without bounds in the model.
_WIDTHS = {"integer": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}


def build_schema(shape: Shape) -> Schema:
    """Build the JSON Schema of a request of ``shape``; recursive shapes become references."""
    definitions: dict[str, Schema] = {}
    schema = _Compiler(definitions).compile(shape)
    return {**schema, "$defs": definitions} if definitions else schema


def build_validator(shape: Shape) -> Validator:
    """Build a validator for ``shape``. jsonschema is imported here to keep the start fast."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    checker: type[Validator] = extend(Draft202012Validator, {"pattern": _check_pattern})  # type: ignore[no-untyped-call]
    return checker(build_schema(shape))


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern of the model with ``regex``: some patterns use Unicode properties, which ``re`` lacks."""
    import regex

    # Java's spelling of all characters beyond 16 bits: it writes each as a surrogate pair.
    return regex.compile(pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"))


def _check_pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    """Match the whole string, as the service does; JSON Schema's own ``pattern`` matches anywhere in it."""
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and compile_pattern(pattern).fullmatch(instance) is None:
        yield ValidationError("does not match")


class _Compiler:
    """Compiles a shape and the shapes it refers to; tracks which shapes it is inside of."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._inside: list[str] = []

    def compile(self, shape: Shape) -> Schema:
        if shape.name in self._inside:
            self._definitions.setdefault(shape.name, {})
            return {"$ref": f"#/$defs/{shape.name}"}
        self._inside.append(shape.name)
        schema = self._compile_type(shape)
        self._inside.pop()
        if shape.name in self._definitions:
            self._definitions[shape.name] = schema
        return schema

    def _compile_type(self, shape: Shape) -> Schema:
        match shape.type_name:
            case "structure":
                return self._compile_structure(cast("StructureShape", shape))
            case "list":
                items = self.compile(cast("ListShape", shape).member)
                return {"type": "array", **_read_bounds(shape), "items": items}
            case "map":
                return self._compile_map(cast("MapShape", shape))
            case type_name:
                return {"type": _SCALAR_TYPES[type_name], **_read_bounds(shape), **_read_values(shape)}

    def _compile_structure(self, shape: StructureShape) -> Schema:
        if shape.is_document_type:
            return {}
        schema: Schema = {"type": "object", "title": shape.name}
        if shape.required_members:
            schema["required"] = list(shape.required_members)
        schema["properties"] = {name: self.compile(member) for name, member in shape.members.items()}
        return schema

    def _compile_map(self, shape: MapShape) -> Schema:
        return {
            "type": "object",
            **_read_bounds(shape),
            "propertyNames": self.compile(shape.key),
            "additionalProperties": self.compile(shape.value),
        }


def _read_bounds(shape: Shape) -> Schema:
    low, high = _BOUNDS.get(shape.type_name, ("", ""))
    metadata: Mapping[str, Any] = shape.metadata
    least, most = _WIDTHS.get(shape.type_name, (None, None))
    bounds = {high: metadata.get("max", most), low: metadata.get("min", least)} if low else {}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _read_values(shape: Shape) -> Schema:
    metadata: Mapping[str, Any] = shape.metadata
    return {name: metadata[name] for name in ("enum", "pattern") if metadata.get(name)}
