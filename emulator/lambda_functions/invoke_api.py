"""Lambda's Invoke: ``POST /2015-03-31/functions/<name or ARN>/invocations``."""

from __future__ import annotations

import base64
import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote

from werkzeug.wrappers import Request, Response

from emulator.exceptions import (
    AwsError,
    FunctionCodeError,
    FunctionKeyError,
    FunctionNotFoundError,
    InvokerClosedError,
    TooManyInvocationsError,
)
from emulator.moto_services.functions.backend import get_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from emulator.lambda_functions.invoker import FunctionInvoker
    from emulator.moto_services.functions.backend import Function

INVOKE_PATH = re.compile(r"/2015-03-31/functions/(?P<name>[^/]+)/invocations/?")
# Lambda's limits for the payload, by invocation type.
_MAX_PAYLOAD_BYTES = {"RequestResponse": 6_291_456, "Event": 1_048_576, "DryRun": 6_291_456}


class InvokeApplication:
    """A WSGI application for the requests whose path ``INVOKE_PATH`` matches."""

    def __init__(
        self,
        invoker: FunctionInvoker,
        find_account: Callable[[WSGIEnvironment], str],
        find_region: Callable[[WSGIEnvironment], str],
    ) -> None:
        """Store the settings.

        Args:
            invoker: runs the functions.
            find_account: returns the account of a request.
            find_region: returns the region of a request.
        """
        self._invoker = invoker
        self._find_account = find_account
        self._find_region = find_region

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Respond to one request."""
        try:
            answer = self._invoke(Request(environ))
        except AwsError as error:
            body = {"Type": "User", "Message": error.message, "message": error.message}
            answer = Response(
                json.dumps(body), error.status, {"x-amzn-ErrorType": error.code}, content_type="application/json"
            )
        return answer(environ, start_response)

    def _invoke(self, request: Request) -> Response:
        function = self._find_function(request)
        kind = request.headers.get("X-Amz-Invocation-Type") or "RequestResponse"
        payload = _read_payload(request, kind)
        if kind == "DryRun":
            return Response(status=HTTPStatus.NO_CONTENT)
        if kind == "Event":
            self._invoker.invoke_async(function, payload)
            return Response(status=HTTPStatus.ACCEPTED)
        with_tail = request.headers.get("X-Amz-Log-Type") == "Tail"
        try:
            result = self._invoker.invoke(
                function,
                payload,
                client_context=_read_client_context(request),
                with_log_tail=with_tail,
                wait_for_worker=1.0,
            )
        except TooManyInvocationsError as error:
            raise AwsError(str(error), code="TooManyRequestsException", status=HTTPStatus.TOO_MANY_REQUESTS) from error
        except InvokerClosedError as error:
            text = "The emulator is shutting down."
            raise AwsError(text, code="ServiceException", status=HTTPStatus.SERVICE_UNAVAILABLE) from error
        headers = {"x-amzn-RequestId": result.request_id, "X-Amz-Executed-Version": result.version}
        if result.function_error is not None:
            headers["X-Amz-Function-Error"] = result.function_error
        if with_tail:
            headers["X-Amz-Log-Result"] = base64.b64encode(result.log_tail.encode()).decode()
        return Response(result.payload, headers=headers, content_type="application/json")

    def _find_function(self, request: Request) -> Function:
        path = INVOKE_PATH.fullmatch(request.path)
        assert path is not None  # the gateway sends nothing else here
        account, region = self._find_account(request.environ), self._find_region(request.environ)
        try:
            return get_function(account, region, unquote(path["name"]), request.args.get("Qualifier"))
        except FunctionNotFoundError as error:
            raise AwsError(str(error), code="ResourceNotFoundException", status=HTTPStatus.NOT_FOUND) from error
        except FunctionKeyError as error:
            raise AwsError(str(error), code="KMSDisabledException", status=HTTPStatus.BAD_GATEWAY) from error
        except FunctionCodeError as error:
            raise AwsError(str(error), code="InvalidZipFileException", status=HTTPStatus.BAD_GATEWAY) from error


def _read_payload(request: Request, kind: str) -> bytes:
    """Read and validate the request's body, which must be JSON. An empty body is an empty object."""
    limit = _MAX_PAYLOAD_BYTES.get(kind)
    if limit is None:
        text = f"Value '{kind}' at 'invocationType' is none of {', '.join(_MAX_PAYLOAD_BYTES)}."
        raise AwsError(text, code="InvalidParameterValueException")
    length = request.content_length or 0
    if length > limit:
        text = f"{length} byte payload is too large for the {kind} invocation type (limit {limit} bytes)"
        raise AwsError(text, code="RequestTooLargeException", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    payload = request.get_data() or b"{}"
    try:
        json.loads(payload)
    except (ValueError, RecursionError) as error:
        text = f"Could not parse request body into json: {error}"
        raise AwsError(text, code="InvalidRequestContentException") from error
    return payload


def _read_client_context(request: Request) -> str | None:
    encoded = request.headers.get("X-Amz-Client-Context")
    if not encoded:
        return None
    try:
        context = json.loads(base64.b64decode(encoded, validate=True))
    except (ValueError, RecursionError) as error:
        text = f"Client context must be JSON, base64-encoded: {error}"
        raise AwsError(text, code="InvalidRequestContentException") from error
    # The function gets it in a header, which is one line of ASCII.
    return json.dumps(context)
