"""JSON Schemas of typed dictionaries, for the OpenAPI document."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

REFERENCE = "#/components/schemas/"
_PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def build_schemas(roots: list[type]) -> dict[str, Any]:
    """Build the schemas of typed dictionaries and of all typed dictionaries that they refer to, by name.

    Raises:
        TypeError: a field's type has no JSON Schema, or two types have the same name.
    """
    schemas: dict[str, Any] = {}
    built: dict[str, type] = {}
    left = list(roots)
    while left:
        kind = left.pop()
        if built.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"{kind.__module__}.{kind.__name__}: there is another type of this name.")
        if kind.__name__ not in schemas:
            hints = get_type_hints(kind, include_extras=True)
            schemas[kind.__name__] = _describe_fields(hints)
            left += [each for hint in hints.values() for each in _find_dictionaries(hint)]
    return dict(sorted(schemas.items()))


def _describe_fields(hints: dict[str, Any]) -> dict[str, Any]:
    required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
    properties = {name: _describe(hint) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required}


def _describe(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _PRIMITIVES:
        return {"type": _PRIMITIVES[hint]}
    if is_typeddict(hint):
        return {"$ref": f"{REFERENCE}{hint.__name__}"}
    if origin is NotRequired:
        return _describe(arguments[0])
    if origin is list:
        return {"type": "array", "items": _describe(arguments[0])}
    if origin is tuple:
        items = [_describe(each) for each in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _describe(arguments[1])}
    if origin in (Union, UnionType):
        return {"anyOf": [_describe(each) for each in arguments]}
    raise TypeError(f"{hint!r} has no JSON Schema here.")


def _find_dictionaries(hint: Any) -> Iterator[type]:
    if is_typeddict(hint):
        yield hint
    for each in get_args(hint):
        yield from _find_dictionaries(each)
