"""moto as one WSGI application: every service this project does not have itself."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

from emulator.moto_services.locks import service_lock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from wsgiref.types import StartResponse, WSGIEnvironment

# The services that this process touches beside HTTP. The others stay as concurrent as moto has them: a long poll of
# SQS must not hold up the next SendMessage.
_LOCKED_SERVICES = frozenset({"cloudwatch", "logs", "events", "awslambda"})


class MotoApplication:
    """Answers a request of any service of moto. moto itself is imported when first needed, a service likewise."""

    def __init__(self) -> None:
        self._dispatcher: Any = None
        self._import = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Find the service (by signature, target header or path) and let it answer."""
        # What werkzeug's own server calls RAW_URI: S3 keys with encoded slashes need the path as it was sent.
        environ.setdefault("RAW_URI", environ.get("REQUEST_URI", ""))
        environ.setdefault("moto.preserved_header_names", environ.get("emulator.metadata_names", {}))
        application = self._load().get_application(environ)
        service = getattr(application, "service", "")
        with _access(service):
            answer: Iterable[bytes] = application(environ, start_response)
        return answer

    def preload(self) -> None:
        """Answer one ListBuckets, so that the first client need not wait for what S3 loads."""
        environ: dict[str, Any] = {}
        setup_testing_defaults(environ)
        answer = self(environ, lambda *_: _discard)
        if hasattr(answer, "close"):
            answer.close()

    def _load(self) -> Any:
        with self._import:
            if self._dispatcher is None:
                from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

                self._dispatcher = DomainDispatcherApplication(create_backend_app)
            return self._dispatcher


def _access(service: str) -> AbstractContextManager[Any]:
    if service == "s3":
        from emulator.moto_services.s3_backend import s3_access

        return s3_access()
    return service_lock(service) if service in _LOCKED_SERVICES else nullcontext()


def _discard(_data: bytes) -> None:
    """Stand for the ``write`` that a WSGI server gives out; moto's applications return their answers instead."""


def has_sagemaker_operation(method_name: str) -> bool:
    """Tell whether moto answers the SageMaker operation of this name in snake case, e.g. ``create_model``."""
    from moto.sagemaker.responses import SageMakerResponse

    return method_name in vars(SageMakerResponse)


def has_sagemaker_resource(account_id: str, region: str, arn: str) -> bool:
    """Tell whether moto has the resource of SageMaker with this ARN, of a kind whose tags it keeps."""
    from moto.sagemaker.models import sagemaker_backends

    _, _, resource = arn.rpartition(":")
    if resource.count("/") != 1:
        return False  # moto's own look-up knows ARNs that end in kind/name only
    try:
        found = sagemaker_backends[account_id][region]._get_resource_from_arn(arn)  # noqa: SLF001 - moto has no other
    except AttributeError:
        return False  # a kind whose tags moto does not keep
    return found is not None
