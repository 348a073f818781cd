"""The Flask application of the emulator's own pages. What it shows it is given as functions; it knows no other room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Flask, Response, jsonify

from emulator.api import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

_FRONT_PAGE = f"""This is the SageMaker Debugger emulator.

Point AWS clients here:  eval "$(smdebug-emulator env)"
How it is doing:         {PREFIX}health
"""


def build_pages(describe_health: Callable[[], dict[str, Any]]) -> Flask:
    """Build the application.

    Args:
        describe_health: what ``GET /_emulator/health`` answers, as JSON; asked anew each time.
    """
    pages = Flask("emulator", static_folder=None)

    @pages.get("/")
    def front_page() -> Response:
        return Response(_FRONT_PAGE, mimetype="text/plain")

    @pages.get(f"{PREFIX}health")
    def health() -> Response:
        return jsonify(describe_health())

    return pages
