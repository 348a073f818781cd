"""Lambda's Invoke over HTTP: ``POST /2015-03-31/functions/<name or ARN>/invocations``, which moto cannot answer."""

from __future__ import annotations

import base64
import json
import re
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

from emulator.exceptions import (
    AwsError,
    FunctionCodeError,
    FunctionNotFoundError,
    InvokerClosedError,
    TooManyInvocationsError,
)
from emulator.moto_services.functions import get_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO
    from wsgiref.types import StartResponse, WSGIEnvironment

    from emulator.lambda_functions.invoker import FunctionInvoker
    from emulator.moto_services.functions import Function

INVOKE_PATH = re.compile(r"/2015-03-31/functions/(?P<name>[^/]+)/invocations/?")
# Lambda's limits for a payload that somebody waits for, and for one that nobody does.
_MAX_PAYLOAD_BYTES = {"RequestResponse": 6_291_456, "Event": 1_048_576, "DryRun": 6_291_456}


class InvokeApplication:
    """A WSGI application for the requests whose path ``INVOKE_PATH`` matches."""

    def __init__(
        self, invoker: FunctionInvoker, account_id: str, find_region: Callable[[WSGIEnvironment], str]
    ) -> None:
        """``find_region`` tells the region that a request is for."""
        self._invoker = invoker
        self._account_id = account_id
        self._find_region = find_region

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        try:
            status, headers, body = self._invoke(environ)
        except AwsError as error:
            status = HTTPStatus(error.status)
            headers = {"x-amzn-ErrorType": error.code, "Content-Type": "application/json"}
            body = json.dumps({"Type": "User", "Message": error.message, "message": error.message}).encode()
        headers = {"x-amzn-RequestId": str(uuid.uuid4()), **headers, "Content-Length": str(len(body))}
        start_response(f"{status.value} {status.phrase}", list(headers.items()))
        return [body]

    def _invoke(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, dict[str, str], bytes]:
        function = self._find_function(environ)
        kind = environ.get("HTTP_X_AMZ_INVOCATION_TYPE") or "RequestResponse"
        payload = _read_payload(environ, kind)
        if kind == "DryRun":
            return HTTPStatus.NO_CONTENT, {}, b""
        if kind == "Event":
            self._invoker.invoke_async(function, payload)
            return HTTPStatus.ACCEPTED, {}, b""
        with_tail = environ.get("HTTP_X_AMZ_LOG_TYPE") == "Tail"
        try:
            result = self._invoker.invoke(
                function,
                payload,
                client_context=_read_client_context(environ),
                with_log_tail=with_tail,
                wait_for_worker=1.0,
            )
        except TooManyInvocationsError as error:
            raise AwsError(str(error), code="TooManyRequestsException", status=HTTPStatus.TOO_MANY_REQUESTS) from error
        except InvokerClosedError as error:
            text = "The emulator is shutting down."
            raise AwsError(text, code="ServiceException", status=HTTPStatus.SERVICE_UNAVAILABLE) from error
        headers = {
            "Content-Type": "application/json",
            "x-amzn-RequestId": result.request_id,
            "X-Amz-Executed-Version": result.version,
        }
        if result.function_error is not None:
            headers["X-Amz-Function-Error"] = result.function_error
        if with_tail:
            headers["X-Amz-Log-Result"] = base64.b64encode(result.log_tail.encode()).decode()
        return HTTPStatus.OK, headers, result.payload

    def _find_function(self, environ: WSGIEnvironment) -> Function:
        path = INVOKE_PATH.fullmatch(environ["PATH_INFO"])
        if environ["REQUEST_METHOD"] != "POST" or path is None:
            raise AwsError(
                "Invoke is POST …/invocations.", code="UnknownOperationException", status=HTTPStatus.NOT_FOUND
            )
        qualifier = parse_qs(environ.get("QUERY_STRING", "")).get("Qualifier", [None])[0]
        try:
            function = get_function(self._account_id, self._find_region(environ), unquote(path["name"]), qualifier)
        except FunctionNotFoundError as error:
            raise AwsError(str(error), code="ResourceNotFoundException", status=HTTPStatus.NOT_FOUND) from error
        except FunctionCodeError as error:
            raise AwsError(str(error), code="InvalidZipFileException", status=HTTPStatus.BAD_GATEWAY) from error
        return function


def _read_payload(environ: WSGIEnvironment, kind: str) -> bytes:
    """Read the request's body as Lambda takes it: JSON; nothing counts as an empty object."""
    limit = _MAX_PAYLOAD_BYTES.get(kind)
    if limit is None:
        text = f"Value '{kind}' at 'invocationType' is none of {', '.join(_MAX_PAYLOAD_BYTES)}."
        raise AwsError(text, code="InvalidParameterValueException", status=HTTPStatus.BAD_REQUEST)
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > limit:
        text = f"{length} byte payload is too large for the {kind} invocation type (limit {limit} bytes)"
        raise AwsError(text, code="RequestTooLargeException", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    stream: BinaryIO = environ["wsgi.input"]
    payload = stream.read(length) if length else b"{}"
    try:
        json.loads(payload)
    except ValueError as error:
        text = f"Could not parse request body into json: {error}"
        raise AwsError(text, code="InvalidRequestContentException", status=HTTPStatus.BAD_REQUEST) from error
    return payload


def _read_client_context(environ: WSGIEnvironment) -> str | None:
    encoded = environ.get("HTTP_X_AMZ_CLIENT_CONTEXT")
    if not encoded:
        return None
    try:
        text = base64.b64decode(encoded, validate=True).decode()
        json.loads(text)
    except ValueError as error:
        text = f"Client context must be JSON, base64-encoded: {error}"
        raise AwsError(text, code="InvalidRequestContentException", status=HTTPStatus.BAD_REQUEST) from error
    return text
