"""Flask application of the emulator's own API.

It gets its data from functions that are passed to it, and imports none of the packages behind them.
"""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Blueprint, Flask, Response, jsonify, redirect, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.wrappers import Response as AnyResponse

from emulator.api import PREFIX
from emulator.console import CONSOLE
from emulator.exceptions import AwsError, InternalFailure, ObjectStoreError, ResourceNotFound

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

    @pages.errorhandler(HTTPException)
    def refuse_request(error: HTTPException) -> AnyResponse:
        # The answer keeps its headers, such as Allow.
        answer = error.get_response()
        refused = _describe_error(error)
        answer.data = jsonify(error=refused.message, code=refused.code).data
        answer.content_type = "application/json"
        return answer

    @pages.get("/")
    def front_page() -> AnyResponse:
        if "text/html" in request.headers.get("Accept", ""):
            return redirect(CONSOLE)
        return Response(_FRONT_PAGE, mimetype="text/plain")

    @pages.get(f"{PREFIX}health")
    def health() -> Response:
        return jsonify(describe_health())

    return pages


def _describe_error(error: HTTPException) -> AwsError:
    """Describe an error of Flask itself in the form of the emulator's own errors."""
    path = request.path[:200]
    if isinstance(error, NotFound):
        return ResourceNotFound(f"There is no {path} here: {PREFIX}docs lists all routes.")
    if isinstance(error, MethodNotAllowed):
        methods = ", ".join(sorted(error.valid_methods or ()))
        return AwsError(f"{path} does not accept {request.method}: use {methods}.", code="MethodNotAllowed")
    if error.code == InternalFailure.status:
        return InternalFailure(f"The emulator failed to answer {path}; its log has the traceback.")
    return AwsError(error.description or error.name, code=type(error).__name__)
