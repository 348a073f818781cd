"""moto's WSGI application: every service that this project lacks."""

import logging
import re
import threading
import traceback
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment
from wsgiref.util import setup_testing_defaults
from xml.parsers.expat import ExpatError

from werkzeug.wrappers import Response

from emulator.exceptions import AwsError, DamagedObjectError
from emulator.moto_services.locks import service_lock
from emulator.moto_services.unit_of_work import keeping, reading
from emulator.state.disk import is_disk_full

logger = logging.getLogger(__name__)

# Requests to these services may wait, and must not block others: a long poll of SQS, a subscriber of SNS, a stack or a
# state machine that calls other services. All other services process one request at a time: moto is not thread-safe,
# and iterates over dictionaries that another request changes.
_CONCURRENT_SERVICES = frozenset({"sqs", "sns", "cloudformation", "stepfunctions", "apigateway", "batch", "moto_api"})
_SIGNED_SERVICE = re.compile(r"Credential=[^,\s]+/(?P<service>[\w-]+)/aws4_request")
# The exceptions that Python raises when moto assumes a well-formed request.
_SIGNS_OF_BAD_INPUT = (
    ArithmeticError, AssertionError, AttributeError, ExpatError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
# Packages of moto's extras that are not installed, by the missing module, if the names differ.
_PACKAGES = {"cfnlint": "cfn-lint"}
# Hosts whose service is kept: one for each service and region, and clients choose the regions.
_MOST_HOSTS = 1000


class MotoApplication:
    """Answers requests to any service of moto. moto and its services are imported when they are first needed."""

    def __init__(self) -> None:
        self._dispatcher: Any = None
        self._import = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Find the service (by signature, target header or path), let it answer, and store its changes.

        Exceptions of moto, and HTML error pages, become errors of the service.
        """
        # werkzeug's own server calls it RAW_URI: S3 keys with encoded slashes need the path as it was sent.
        environ.setdefault("RAW_URI", environ.get("REQUEST_URI", ""))
        environ.setdefault("moto.preserved_header_names", environ.get("emulator.metadata_names", {}))
        return self._answer(environ)(environ, start_response)

    def preload(self) -> None:
        """Answer one ListBuckets, so that the first client does not have to wait until S3 is loaded."""
        environ: dict[str, Any] = {}
        setup_testing_defaults(environ)
        Response.from_app(self, environ).close()

    def _answer(self, environ: WSGIEnvironment) -> Response:
        from emulator.moto_services.service_requests import only_reads, read_operation

        found = _SIGNED_SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
        service, operation = found["service"] if found else "s3", read_operation(environ)
        try:
            with reading():  # moto looks at a backend to build a service's application
                application = self._load().get_application(environ)
            service = getattr(application, "service", "")
            with ExitStack() as around:
                around.enter_context(reading() if only_reads(environ, operation) else keeping())
                transfer = None
                if service == "s3":
                    from emulator.moto_services.s3.bodies import receive_body
                    from emulator.moto_services.s3.index_rows import find_journal

                    transfer = around.enter_context(closing(receive_body(environ, find_journal())))
                around.enter_context(_access(service))
                answer = Response.from_app(application, environ)
                if transfer is not None:
                    answer = transfer.take_sent(answer, environ)
            return _translate_page(service, environ, operation, answer)
        except Exception as error:  # noqa: BLE001 -- whatever moto raises; logged there
            return _translate_exception(service, environ, operation, error)

    def _load(self) -> Any:
        with self._import:
            if self._dispatcher is None:
                from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

                self._dispatcher = DomainDispatcherApplication(create_backend_app)
                # For each request it lists moto's folder, looks at its 200 folders, and matches 200 patterns.
                of_host = lru_cache(_MOST_HOSTS)(self._dispatcher.get_backend_for_host)
                self._dispatcher.get_backend_for_host = of_host
            return self._dispatcher


def _translate_page(service: str, environ: WSGIEnvironment, operation: str | None, answer: Response) -> Response:
    """Return ``answer``, or an error of the service instead of an HTML page of werkzeug."""
    is_page = answer.status_code >= 400 and answer.mimetype == "text/html" and answer.data.startswith(b"<!doctype")
    if not is_page:
        return answer
    answer.close()
    if answer.status_code in (404, 405):
        return _refuse_unknown(service, environ, operation)
    return _refuse_bad_input(service, environ, operation, f"the request cannot be read ({answer.status})")


def _translate_exception(service: str, environ: WSGIEnvironment, operation: str | None, error: Exception) -> Response:
    from botocore.model import OperationNotFoundError

    from emulator.moto_services.service_requests import encode_error

    name = f"{service} {operation or environ['REQUEST_METHOD'] + ' ' + environ.get('PATH_INFO', '')}"
    if isinstance(error, AwsError):
        return encode_error(service, environ, error.code, error.message, error.status)
    if isinstance(error, DamagedObjectError):  # logged already
        return encode_error(service, environ, "InternalError", f"{error}. Run smdebug-emulator check.", 500)
    if is_disk_full(error):
        logger.error("%s failed, because the disk is full: %s", name, error)
        why = f" ({error.strerror})" if isinstance(error, OSError) else ""
        text = f"The disk that holds the emulator's state is full{why}: free some space there, and try again."
        return encode_error(service, environ, "InsufficientStorage", text, HTTPStatus.INSUFFICIENT_STORAGE)
    if isinstance(error, ImportError):
        missing = (error.name or "").partition(".")[0]
        text = (
            f"{name} needs the Python package {_PACKAGES.get(missing, missing)}, which is not part of the emulator's "
            f"install. Run: pip install {_PACKAGES.get(missing, missing)}, and start the emulator again."
        )
        return encode_error(service, environ, "ServiceUnavailable", text, 400)
    if isinstance(error, (NotImplementedError, OperationNotFoundError)):
        return _refuse_unknown(service, environ, operation)
    if isinstance(error, _SIGNS_OF_BAD_INPUT) and not _is_ours(error):
        logger.warning("%s was refused, because moto does not understand it:", name, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
        return _refuse_bad_input(service, environ, operation, reason, is_xml=isinstance(error, ExpatError))
    logger.error("%s failed", name, exc_info=error)
    text = "We encountered an internal error. The emulator's log has the traceback."
    code = "InternalError" if service == "s3" else "InternalFailure"
    return encode_error(service, environ, code, text, 500)


def _is_ours(error: Exception) -> bool:
    """Check whether an exception was raised by this project, and not in moto or below it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "/emulator/" in last.filename


def _refuse_unknown(service: str, environ: WSGIEnvironment, operation: str | None) -> Response:
    from emulator.moto_services.service_requests import encode_error, find_model, find_protocol

    protocol = find_protocol(find_model(service), environ)
    asked = operation or f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}"
    text = f"The emulator does not have {asked[:200]} of {service}."
    if service == "s3":
        return encode_error(service, environ, "NotImplemented", text, 501)
    if protocol in ("query", "ec2"):
        return encode_error(service, environ, "InvalidAction", text, 400)
    status = 404 if protocol.startswith("rest") else 400
    return encode_error(service, environ, "UnknownOperationException", text, status)


def _refuse_bad_input(
    service: str, environ: WSGIEnvironment, operation: str | None, reason: str, *, is_xml: bool = False
) -> Response:
    from emulator.moto_services.service_requests import encode_error, find_bad_input_code

    code = find_bad_input_code(service, environ, operation, is_xml=is_xml)
    text = f"The request cannot be understood: {reason[:300]}"
    return encode_error(service, environ, code, text, 400)


def _access(service: str) -> AbstractContextManager[Any]:
    if service == "s3":
        from emulator.moto_services.s3.backend import s3_access

        return s3_access()
    return nullcontext() if service in _CONCURRENT_SERVICES else service_lock(service)


def has_sagemaker_operation(method_name: str) -> bool:
    """Check whether moto answers a SageMaker operation, given in snake case, e.g. ``create_model``."""
    from moto.sagemaker.models import sagemaker_backends
    from moto.sagemaker.responses import SageMakerResponse

    sagemaker_backends.items()  # its first use adds the operations that moto lacks
    return method_name in vars(SageMakerResponse)


def has_sagemaker_resource(account_id: str, region: str, arn: str) -> bool:
    """Check whether moto has the SageMaker resource with this ARN, of a kind whose tags it stores."""
    from moto.sagemaker.models import sagemaker_backends

    try:
        found = sagemaker_backends[account_id][region]._get_resource_from_arn(arn)  # noqa: SLF001 - moto has no other
    except (AttributeError, ValueError):
        return False  # a kind whose tags moto does not store, or an ARN that does not end in kind/name
    return found is not None
