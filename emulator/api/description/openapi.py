"""``/_emulator/openapi.json`` and ``/_emulator/docs``: this API's description."""

import re
from html import escape
from typing import Any

from flask import Blueprint, Response, jsonify

from emulator.api import PREFIX
from emulator.api.description.routes import PAGES, Page
from emulator.api.description.schemas import REFERENCE, build_schemas


def build_document(version: str) -> dict[str, Any]:
    """Build the OpenAPI document."""
    paths: dict[str, Any] = {}
    for page in PAGES:
        names = re.findall(r"<(\w+)>", page.path)
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ] + [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
            for name, text in page.query.items()
        ]
        operation: dict[str, Any] = {
            "summary": page.summary,
            "operationId": _name_operation(page),
            "parameters": parameters,
            "responses": {
                "200": {"description": "The answer.", **_describe_answer(page.answer)},
                "default": {"description": 'An error: JSON {"error": one sentence}.'},
            },
        }
        if page.body is not None:
            operation["requestBody"] = {"content": {"application/json": {"example": page.body}}}
        paths.setdefault(re.sub(r"<(\w+)>", r"{\1}", page.path), {})[page.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SageMaker Debugger emulator",
            "version": version,
            "description": "The API of the console and the command line. The AWS services are at the same address.",
        },
        "paths": paths,
        "components": {"schemas": build_schemas([page.answer for page in PAGES if page.answer is not None])},
    }


def _describe_answer(answer: type | None) -> dict[str, Any]:
    if answer is None:
        return {}
    return {"content": {"application/json": {"schema": {"$ref": f"{REFERENCE}{answer.__name__}"}}}}


def _name_operation(page: Page) -> str:
    words = re.findall(r"[a-z0-9]+", page.path.removeprefix(PREFIX))
    return page.method.lower() + "".join(word.capitalize() for word in words)


def build_openapi_pages(version: str) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("openapi", __name__)

    @pages.get(f"{PREFIX}openapi.json")
    def document() -> Any:
        return jsonify(build_document(version))

    @pages.get(f"{PREFIX}docs")
    def docs() -> Response:
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}
        return Response(render_docs(), headers=headers, mimetype="text/html")

    return pages


def render_docs() -> str:
    """Render ``PAGES`` as an HTML page."""
    sections = []
    for page in PAGES:
        rows = "".join(
            f"<dt><code>{escape(name)}</code></dt><dd>{escape(text)}</dd>" for name, text in page.query.items()
        )
        sections.append(
            f"<section><h2><code>{page.method} {escape(page.path)}</code></h2><p>{escape(page.summary)}</p>"
            f"<dl>{rows}</dl></section>"
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>API of the SageMaker Debugger emulator</title><style>:root{color-scheme:light dark;font:1rem/1.5 "
        "system-ui,sans-serif}body{max-width:56rem;margin:2rem auto;padding:0 1rem}h2{font-size:1rem;margin:2rem 0 0;"
        "overflow-wrap:anywhere}p{margin:.3rem 0}dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;"
        "margin:.3rem 0 0 1rem}dd{margin:0}</style><main><h1>API of the SageMaker Debugger emulator</h1>"
        f"<p>For programs: <a href='{PREFIX}openapi.json'>openapi.json</a>. An error is a JSON object whose "
        f"<code>error</code> is one sentence.</p>{''.join(sections)}</main></html>"
    )
