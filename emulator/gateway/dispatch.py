"""The one WSGI application of the emulator: every request gets here and leaves with an answer.

Who answers, in this order: nobody when Host or Origin are not ours; the emulator's own pages under ``/_emulator/``;
Lambda's Invoke; SageMaker's operations that the emulator has; moto.
"""

from __future__ import annotations

import logging
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import Flask, Response, jsonify, request

from emulator.exceptions import AwsError, InternalFailure
from emulator.gateway.authentication import check_source
from emulator.gateway.protocol import encode_error
from emulator.gateway.sagemaker import TARGET_PREFIX, check_known

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from concurrent.futures import Future
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.gateway.protocol import WireAnswer
    from emulator.gateway.sagemaker import SageMaker

logger = logging.getLogger(__name__)

OWN_PREFIX = "/_emulator/"
_FRONT = """This is the SageMaker Debugger emulator.

Point AWS clients here:  eval "$(smdebug-emulator env)"
How it is doing:         /_emulator/health
"""
# How long a request waits for a room that is still being built.
_START_SECONDS = 60.0
_INVOKE_PATH = re.compile(r"/2015-03-31/functions/[^/]+/invocations/?")


@dataclass(frozen=True, slots=True)
class Rooms:
    """Who answers what.

    A room that is still being built is a future; a request for it waits. So the emulator answers early in its start:
    a client's first request to S3 need not wait for the engine's answer.

    Attributes:
        sagemaker: SageMaker's operations.
        invoke: a WSGI application for Lambda's Invoke.
        moto: a WSGI application for every other service.
        has_moto_operation: whether moto has a SageMaker operation, by its name in snake case.
        health: what ``GET /_emulator/health`` answers.
        own_hosts: the names and addresses at which the emulator may be asked.
    """

    sagemaker: Future[SageMaker]
    invoke: Future[WSGIApplication]
    moto: Future[WSGIApplication]
    has_moto_operation: Callable[[str], bool]
    health: Callable[[], dict[str, Any]]
    own_hosts: Collection[str]


def build_gateway(rooms: Rooms) -> WSGIApplication:
    """The gateway as a WSGI application: ``Dispatch`` in front of Flask, Lambda and moto."""
    return Dispatch(rooms, build_flask(rooms))


def build_flask(rooms: Rooms) -> Flask:
    """The emulator's own pages and SageMaker's operations."""
    flask = Flask("emulator", static_folder=None)

    @flask.get(f"{OWN_PREFIX}health")
    def health() -> Response:
        return jsonify(rooms.health())

    @flask.get("/")
    def front() -> Response:
        return Response(_FRONT, mimetype="text/plain")

    @flask.post("/")
    def operation() -> Response:
        name = request.headers["X-Amz-Target"].removeprefix(TARGET_PREFIX)
        return _build_response(rooms.sagemaker.result().answer(name, request.environ, request.get_data))

    return flask


class Dispatch:
    """Sends a request to the room it is for. Never raises, always answers, gives every answer a request id."""

    def __init__(self, rooms: Rooms, flask: Flask) -> None:
        self._rooms = rooms
        self._flask = flask

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        answer_start = _StartWithRequestId(start_response)
        try:
            check_source(environ, self._rooms.own_hosts)
            return self._find_room(environ)(environ, answer_start)
        except AwsError as error:
            return _build_response(encode_error(error))(environ, answer_start)
        except Exception:
            logger.exception("%s %s failed", environ.get("REQUEST_METHOD"), environ.get("PATH_INFO"))
            if answer_start.started:
                raise  # the server cuts the connection: half an answer is out
            text = "The emulator failed to answer; its log has the traceback."
            return _build_response(encode_error(InternalFailure(text)))(environ, answer_start)

    def _find_room(self, environ: WSGIEnvironment) -> WSGIApplication:
        path = environ.get("PATH_INFO", "")
        if path.startswith(OWN_PREFIX):
            return self._flask
        if _is_from_nobody(environ):
            return self._flask
        if environ.get("REQUEST_METHOD") == "POST":
            if _INVOKE_PATH.fullmatch(path):
                return self._rooms.invoke.result(_START_SECONDS)
            target = environ.get("HTTP_X_AMZ_TARGET", "")
            if path == "/" and target.startswith(TARGET_PREFIX):
                name = target.removeprefix(TARGET_PREFIX)
                if self._rooms.sagemaker.result(_START_SECONDS).has(name):
                    return self._flask
                check_known(name, self._rooms.has_moto_operation)
        return self._rooms.moto.result(_START_SECONDS)


def _is_from_nobody(environ: WSGIEnvironment) -> bool:
    """A browser at the address itself. S3 sends it to a page about S3, for ListBuckets has to be signed."""
    signed = "HTTP_AUTHORIZATION" in environ or bool(environ.get("QUERY_STRING"))
    own_name = urlsplit(f"//{environ.get('HTTP_HOST', '')}").hostname or ""
    at_bucket = own_name.endswith(".localhost")
    return environ.get("REQUEST_METHOD") == "GET" and environ.get("PATH_INFO") == "/" and not signed and not at_bucket


class _StartWithRequestId:
    """``start_response`` that adds ``x-amzn-RequestId`` where the room gave none, and knows whether it was called."""

    def __init__(self, start_response: StartResponse) -> None:
        self._start_response = start_response
        self.started = False

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self.started = True
        if not any(name.lower() == "x-amzn-requestid" for name, _ in headers):
            headers = [*headers, ("x-amzn-RequestId", str(uuid.uuid4()))]
        return self._start_response(status, headers, exc_info)


def _build_response(answer: WireAnswer) -> Response:
    return Response(answer.body, status=answer.status, headers=answer.headers)
