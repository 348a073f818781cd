"""Injected faults of requests: service errors, delays, truncated bodies."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from emulator.faults import FAULTS, OWN_SCOPES


def read_service(environ: WSGIEnvironment) -> str:
    """Read the service from a request's signature; S3 if it is unsigned."""
    # The scope is in a header, or in the query string of a presigned URL.
    signed = environ.get("HTTP_AUTHORIZATION", "") + environ.get("QUERY_STRING", "").replace("%2F", "/")
    found = re.search(r"[Cc]redential=[^,\s&]+/([\w-]+)/aws4_request", signed)
    return found[1] if found else "s3"


def find_failure(environ: WSGIEnvironment) -> WSGIApplication | None:
    """Return an application that fails instead of the service if a fault strikes; None otherwise."""
    service = read_service(environ)
    if service in OWN_SCOPES:
        return None
    FAULTS.wait(service)
    # The request body ends too early for the service, which waits for the rest in vain.
    if environ["REQUEST_METHOD"] in ("PUT", "POST") and FAULTS.strikes(service, "truncate"):
        from emulator.moto_services.service_requests import encode_error

        text = "The request's body ended too early. (Injected fault.)"
        return encode_error(service, environ, "RequestTimeout", text, 400)
    if not FAULTS.strikes(service, "error"):
        return None
    from emulator.moto_services.service_requests import encode_error

    text = "Please reduce your request rate. (Injected fault.)"
    code = "SlowDown" if service == "s3" else "ServiceUnavailable"
    return encode_error(service, environ, code, text, 503)


def cutting(application: WSGIApplication, environ: WSGIEnvironment) -> WSGIApplication:
    """Return ``application``, or one whose answer is cut off halfway if a fault strikes."""
    if environ["REQUEST_METHOD"] != "GET" or not FAULTS.strikes(read_service(environ), "truncate"):
        return application

    def answer_half(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        length = 0

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            nonlocal length
            length = next((int(text) for name, text in headers if name.lower() == "content-length"), 0)
            return start_response(status, headers, *rest)

        answer: Any = application(environ, start)

        def pieces() -> Iterator[bytes]:
            left = length // 2
            try:
                for piece in answer:
                    if left > 0:
                        yield piece[:left]
                    left -= len(piece)
            finally:
                if hasattr(answer, "close"):
                    answer.close()

        return pieces()

    return answer_half
