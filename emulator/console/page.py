"""``/console``: the built page, with its security headers."""

import json
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, send_from_directory

from emulator.console import ASSETS, BUILT, CONSOLE

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_NOT_BUILT = (
    "The console was not built: this is a checkout, or a wheel that was made without it. make console builds it; "
    "everything else of the emulator works without.\n"
)


def build_console_pages(folder: Path = BUILT) -> Blueprint:
    """Build the pages.

    Args:
        folder: the folder of the built page; if it does not exist, the answer says how to build the page.
    """
    pages = Blueprint("console", __name__)

    @pages.get(CONSOLE)
    @pages.get(f"{CONSOLE}/")
    def show() -> Response:
        try:
            names: dict[str, Any] = json.loads((folder / "names.json").read_text())
        except FileNotFoundError:
            return Response(_NOT_BUILT, 503, mimetype="text/plain")
        return Response(render_page(names["script"], names["style"]), headers=_HEADERS, mimetype="text/html")

    @pages.get(f"{ASSETS}<name>")
    def load(name: str) -> Response:
        answer = send_from_directory(folder.resolve(), name, max_age=31_536_000)
        answer.headers.update({"X-Content-Type-Options": "nosniff"})
        return answer

    return pages


def render_page(script: str, style: str) -> str:
    """Render the page's frame; the script fills it."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>SageMaker Debugger console</title><link rel="icon" href="data:,"><link rel="stylesheet" '
        f'href="{ASSETS}{style}"></head><body><noscript>The console needs JavaScript.</noscript>'
        f'<div id="app"></div><script type="module" src="{ASSETS}{script}"></script></body></html>'
    )
