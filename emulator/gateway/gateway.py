"""The emulator's WSGI application: every request passes through it.

A request passes through the handlers in ``Gateway``, in order, which choose who answers. Every answer gets a request
id, and every exception becomes an answer.
"""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from emulator.api import AUTHORITY_PATH, PREFIX
from emulator.console import CONSOLE
from emulator.exceptions import AccessDeniedException, AwsError, InternalFailure
from emulator.gateway.authentication import ACCOUNT, ACCOUNT_HEADER, check_source, read_access_key
from emulator.gateway.faults import cutting, find_failure
from emulator.gateway.protocol import WireAnswer, encode_error
from emulator.gateway.sagemaker import check_request, read_operation_name
from emulator.gateway.starting_service import StartingService
from emulator.lambda_functions.invoke_api import INVOKE_PATH
from emulator.moto_services.iam.principals import note_session
from emulator.moto_services.stored_only import build_note, noting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from emulator.gateway.guard import Guard, TokenCheck
    from emulator.gateway.sagemaker import SageMaker
    from emulator.security.keys import Keys

logger = logging.getLogger(__name__)

# moto's own control API: reset, recorder (which writes into the working folder) and dashboard. None of it is signed.
_MOTO_API = "/moto-api"
# SageMaker operations that change nothing.
_READING = ("Describe", "Get", "List", "Search")
# How long a request waits for a service that is still starting.
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """The services that the gateway passes requests to, and the lookups that it needs.

    A service that is still starting is a future, and a request for it waits. This lets the emulator answer early in its
    start: a client's first S3 request does not wait for the container engine.

    Attributes:
        own_hosts: the host names and addresses of the emulator; ``Gateway.allow_host`` adds to them.
        pages: serves the emulator's own API and console.
        has_moto_operation: whether moto implements a SageMaker operation, by its name in snake case.
        find_account: returns the account of an access key.
        opens_moto_api: whether moto's control API below ``/moto-api/`` is open.
        reset: removes all state, jobs included, when moto's control API is asked to.
        keys: seal the credentials of containers; None without keys.
        guard: refuses unsigned and unauthorized requests; None if signatures are not required.
        token_check: refuses requests for the emulator's own pages without the token; None if no token is required.
        settle: waits until the changes of SageMaker's jobs are replicated; None if there is no replica.
        may_change: whether this process may change the state; None if it always may.
        invoke: answers Lambda's Invoke.
        sagemaker: answers SageMaker's operations.
        moto: answers every other service.
    """

    own_hosts: Collection[str]
    pages: WSGIApplication
    has_moto_operation: Callable[[str], bool]
    find_account: Callable[[str], str]
    opens_moto_api: bool = False
    reset: Callable[[], object] | None = None
    keys: Keys | None = None
    guard: Guard | None = None
    token_check: TokenCheck | None = None
    settle: Callable[[], None] | None = None
    may_change: Callable[[], bool] | None = None
    invoke: StartingService[WSGIApplication] = field(default_factory=StartingService)
    sagemaker: StartingService[SageMaker] = field(default_factory=StartingService)
    moto: StartingService[WSGIApplication] = field(default_factory=StartingService)

    def cancel(self) -> None:
        """Cancel the futures, so that no request waits for a service that will never be ready."""
        for service in (self.invoke, self.sagemaker, self.moto):
            service.cancel()


class Request(NamedTuple):
    """A request, with the properties by which the handlers distinguish requests.

    Attributes:
        environ: its WSGI environment.
        operation: the SageMaker operation that it names; None if it names none.
    """

    environ: WSGIEnvironment
    method: str
    path: str
    operation: str | None


class Gateway:
    """Passes each request to one service. Raises only after the answer has begun; gives each answer a request id."""

    def __init__(self, services: GatewayServices) -> None:
        self._services = services
        self._own_hosts = set(services.own_hosts)
        # Operations already logged as stored but not run.
        self._noted: set[str] = set()
        # The first handler that returns an application answers; None passes the request on to the next. The last one
        # always returns an application.
        self._handlers: list[Callable[[Request], WSGIApplication | None]] = [
            self._refuse_foreign_sources,
            self._refuse_controls,
            self._refuse_changes,
            self._reset,
            self._name_account,
            self._serve_pages,
            self._check_signature,
            self._invoke_function,
            self._fail_on_purpose,
            self._run_operation,
            self._pass_to_moto,
        ]

    def allow_host(self, host: str) -> None:
        """Accept requests to one more host name or address of this machine."""
        self._own_hosts.add(host)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        request = parse_request(environ)
        start_answer = _AnswerStart(start_response)
        try:
            application = next(found for handle in self._handlers if (found := handle(request)) is not None)
            return application(environ, start_answer)
        except Exception as error:
            answer = encode_failure(request, error)
            if start_answer.called:
                raise  # the server cuts the connection: half an answer was sent
            return answer(environ, start_answer)

    def _refuse_foreign_sources(self, request: Request) -> None:
        check_source(request.environ, self._own_hosts)

    def _refuse_controls(self, request: Request) -> None:
        if request.path.startswith(_MOTO_API) and not self._services.opens_moto_api:
            raise AccessDeniedException(
                f"{_MOTO_API}/ is closed: it resets and records every service without a signature. Start the emulator "
                "with --moto-api, or with SMDEBUG_EMULATOR_MOTO_API=1 in its environment, to open it."
            )

    def _refuse_changes(self, request: Request) -> None:
        """Refuse what may change the state, while another emulator may have taken it over; clients try again."""
        if self._services.may_change is None or self._services.may_change():
            return
        if request.method not in ("GET", "HEAD") and not (request.operation or "").startswith(_READING):
            raise AwsError(
                "This emulator could not reach the S3 with the copy of its state for longer than its lease. Another "
                "emulator may have taken over, so this one refuses changes until it reaches that S3 again.",
                code="ServiceUnavailable",
                status=503,
            )

    def _reset(self, request: Request) -> WSGIApplication | None:
        """Reset everything, instead of moto, which knows neither the jobs nor the files in the state folder."""
        if self._services.reset is None or (request.method, request.path) != ("POST", f"{_MOTO_API}/reset"):
            return None
        self._services.reset()
        return WireAnswer(200, {"Content-Type": "application/json"}, b'{"status": "ok"}')

    def _name_account(self, request: Request) -> None:
        """Set the account in the header that both moto and the emulator's own services read."""
        environ, services = request.environ, self._services
        if services.guard is not None:
            environ.pop(ACCOUNT_HEADER, None)  # not the client, but the key that signed determines it
        elif ACCOUNT_HEADER in environ and not ACCOUNT.fullmatch(environ[ACCOUNT_HEADER]):
            raise AwsError("X-Moto-Account-Id has to be an account of 12 digits.", code="ValidationError")
        account = None if services.keys is None else note_session(environ, services.keys)
        environ.setdefault(ACCOUNT_HEADER, account or services.find_account(read_access_key(environ)))

    def _serve_pages(self, request: Request) -> WSGIApplication | None:
        check = None if request.path == AUTHORITY_PATH else self._services.token_check
        if not request.path.startswith(PREFIX) and not is_from_a_browser(request, may_ask=check is not None):
            return None
        return (check.refuse(request.environ) if check is not None else None) or self._services.pages

    def _check_signature(self, request: Request) -> WSGIApplication | None:
        return None if self._services.guard is None else self._services.guard.refuse(request.environ)

    def _invoke_function(self, request: Request) -> WSGIApplication | None:
        if request.method == "POST" and INVOKE_PATH.fullmatch(request.path):
            return self._services.invoke.result(_START_SECONDS)
        return None

    def _run_operation(self, request: Request) -> WSGIApplication | None:
        """Answer an operation that the emulator implements; check the request of any other, which moto answers."""
        if request.operation is None:
            return None
        with self._services.sagemaker.use(_START_SECONDS) as sagemaker:
            if sagemaker.has(request.operation):
                answer = sagemaker.answer(request.operation, request.environ)
                if self._services.settle is not None and not request.operation.startswith(_READING):
                    self._services.settle()
                return answer
        check_request(request.operation, request.environ, self._services.has_moto_operation)
        note = build_note(request.operation)
        if note is None:
            return None
        if request.operation not in self._noted:
            self._noted.add(request.operation)
            logger.info("%s", note)
        return noting(self._pass_to_moto(request), note)

    def _fail_on_purpose(self, request: Request) -> WSGIApplication | None:
        return find_failure(request.environ)

    def _pass_to_moto(self, _request: Request) -> WSGIApplication:
        return self._answer_by_moto

    def _answer_by_moto(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with self._services.moto.use(_START_SECONDS) as moto:
            return cutting(moto, environ)(environ, start_response)


def parse_request(environ: WSGIEnvironment) -> Request:
    """Parse the method, the path and the operation in X-Amz-Target."""
    method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
    operation = read_operation_name(environ) if method == "POST" and path == "/" else None
    return Request(environ, method, path, operation)


def is_from_a_browser(request: Request, *, may_ask: bool = False) -> bool:
    """Return whether a browser opens the address itself, rather than an S3 client, whose ListBuckets is signed.

    Args:
        request: the request.
        may_ask: whether the query may contain the token.
    """
    query = request.environ.get("QUERY_STRING", "")
    asks = bool(query) and not (may_ask and query.startswith("token="))
    signed = "HTTP_AUTHORIZATION" in request.environ or asks
    own_name = urlsplit(f"//{request.environ.get('HTTP_HOST', '')}").hostname or ""
    if request.method != "GET" or signed or own_name.endswith(".localhost"):
        return False
    # A bucket may have the same name as the console: only a client that accepts HTML gets the page.
    wants_page = "text/html" in request.environ.get("HTTP_ACCEPT", "")
    return request.path == "/" or (wants_page and request.path in (CONSOLE, f"{CONSOLE}/"))


def encode_failure(request: Request, error: Exception) -> WireAnswer:
    """Encode one of the emulator's own errors as AWS does; log the traceback of any other, and refer to the log."""
    if isinstance(error, AwsError):
        return encode_error(error)
    if isinstance(error, CancelledError):  # what stopped the start is said elsewhere
        said = "The emulator stops, or could not start: its own message says why."
        return encode_error(AwsError(said, code="ServiceUnavailable", status=503))
    logger.error("%s failed", request.operation or f"{request.method} {request.path}", exc_info=error)
    where = f"in {request.operation}" if request.operation else "to answer"
    return encode_error(InternalFailure(f"The emulator failed {where}; its log has the traceback."))


class _AnswerStart:
    """Adds ``x-amzn-RequestId`` to an answer unless the service has set it; records whether the answer has begun."""

    def __init__(self, start_response: StartResponse) -> None:
        self._start_response = start_response
        self.called = False

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        self.called = True
        if not any(name.lower() == "x-amzn-requestid" for name, _ in headers):
            headers = [*headers, ("x-amzn-RequestId", str(uuid.uuid4()))]
        return self._start_response(status, headers, exc_info)
