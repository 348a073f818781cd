"""Schemas of typed dictionaries."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import pytest

from emulator.api.description.schemas import build_schemas


class Leaf(TypedDict):
    number: float | None
    pair: NotRequired[tuple[int, str]]


class Tree(TypedDict):
    leaves: dict[str, list[Leaf]]
    below: list[Tree]
    free: Any


class Wrong(TypedDict):
    when: complex


def test_all_that_a_type_refers_to_is_described_once() -> None:
    schemas = build_schemas([Tree, Leaf])
    assert list(schemas) == ["Leaf", "Tree"]
    assert schemas["Leaf"] == {
        "type": "object",
        "properties": {
            "number": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        "required": ["number"],
    }
    leaves = {"type": "array", "items": {"$ref": "#/components/schemas/Leaf"}}
    assert schemas["Tree"]["properties"] == {
        "leaves": {"type": "object", "additionalProperties": leaves},
        "below": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
        "free": {},
    }


def test_what_has_no_schema_is_named() -> None:
    with pytest.raises(TypeError, match="complex"):
        build_schemas([Wrong])


def test_two_types_of_one_name_are_refused() -> None:
    other = type("Leaf", (dict,), {})
    with pytest.raises(TypeError, match="Leaf: there is another type"):
        build_schemas([Leaf, other])
