"""Comparison of the API's answers with its OpenAPI document."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator


def list_described(document: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return method and content of each path whose answer is described, by the path behind the API's prefix."""
    return {
        path.removeprefix("/_emulator/"): (method.upper(), operation["responses"]["200"]["content"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "content" in operation["responses"]["200"]
    }


def find_differences(
    document: dict[str, Any], asked: Mapping[str, Sequence[str]], ask: Callable[[str, str, Any], dict[str, Any]]
) -> list[str]:
    """Ask each address, and list what the answers have beside or against the document.

    Args:
        document: the OpenAPI document.
        asked: addresses by the path that they are of.
        ask: returns the answer to a method, an address and a body.
    """
    described, wrong = list_described(_close_objects(document)), []
    for path, addresses in asked.items():
        method, content = described[path]
        schema = {**content["application/json"]["schema"], "components": document["components"]}
        for address in addresses:
            answer = ask(method, address, {"parameters": {}, "tags": {"note": "asked"}} if method == "POST" else None)
            errors = Draft202012Validator(schema).iter_errors(answer)
            wrong += [f"{address}: {error.json_path}: {error.message}" for error in errors]
    return wrong


def _close_objects(document: dict[str, Any]) -> dict[str, Any]:
    """Forbid fields that are not described; reports of rules are smdebug's own."""
    for name, schema in document["components"]["schemas"].items():
        if name not in ("Report", "RuleFinding", "Node"):
            schema["additionalProperties"] = False
    return document
