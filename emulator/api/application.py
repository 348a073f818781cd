"""Flask application of the emulator's own API.

It gets its data from functions that are passed to it, and imports none of the packages behind them.
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from emulator.api import PREFIX
from emulator.console import CONSOLE
from emulator.exceptions import AwsError, ObjectStoreError

_FRONT_PAGE = f"""This is the SageMaker Debugger emulator.

Point AWS clients here:  eval "$(smdebug-emulator env)"
How it is doing:         {PREFIX}health
Its jobs, in a browser:  {CONSOLE}
What can be asked:       {PREFIX}docs
"""


def build_pages(describe_health: Callable[[], dict[str, Any]], blueprints: Iterable[Blueprint] = ()) -> Flask:
    """Build the application.

    Args:
        describe_health: returns the response of ``GET /_emulator/health``; called for each request.
        blueprints: all other routes.
    """
    pages = Flask("emulator", static_folder=None)
    for blueprint in blueprints:
        pages.register_blueprint(blueprint)

    @pages.errorhandler(AwsError)
    def refuse(error: AwsError) -> tuple[Any, int]:
        return jsonify(error=error.message, code=error.code), error.status

    @pages.errorhandler(ObjectStoreError)
    def refuse_missing(error: ObjectStoreError) -> tuple[Any, int]:
        return jsonify(error=str(error)), 404

    @pages.get("/")
    def front_page() -> AnyResponse:
        if "text/html" in request.headers.get("Accept", ""):
            return redirect(CONSOLE)
        return Response(_FRONT_PAGE, mimetype="text/plain")

    @pages.get(f"{PREFIX}health")
    def health() -> Response:
        return jsonify(describe_health())

    return pages
