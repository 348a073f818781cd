"""SageMaker API: dispatch of the operation named by ``X-Amz-Target``."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from botocore import xform_name

from emulator.exceptions import AwsError, UnknownOperationException
from emulator.gateway.authentication import ACCOUNT_HEADER, authenticate, load_regions
from emulator.gateway.protocol import MAX_BODY_BYTES, dump_json, find_operation, load_operation
from emulator.gateway.request_queue import RequestQueue
from emulator.gateway.sdk_versions import describe_untried
from emulator.operations import find_operations
from emulator.operations.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from wsgiref.types import WSGIEnvironment

    from emulator.gateway.protocol import Operation, WireAnswer
    from emulator.jobs import Jobs
    from emulator.operations import Handler

_TARGET_PREFIX = "SageMaker."
# DeleteTrainingJob may wait for the end of a job run.
_PATIENCE_SECONDS = 1.0


def read_operation_name(environ: WSGIEnvironment) -> str | None:
    """Read the SageMaker operation that a request names; None for no operation, or one of another service."""
    target: str = environ.get("HTTP_X_AMZ_TARGET", "")
    return target.removeprefix(_TARGET_PREFIX) if target.startswith(_TARGET_PREFIX) else None


class SageMaker:
    """Answers the operations of ``emulator.operations``."""

    def __init__(
        self,
        find_jobs: Callable[[str], Jobs],
        has_moto_resource: Callable[[str, str, str], bool],
        operations: Mapping[str, Handler] | None = None,
    ) -> None:
        """Check that the model has every operation.

        Args:
            find_jobs: returns the jobs of an account.
            has_moto_resource: whether moto has a resource, by account, region and ARN.
            operations: the operations; those of ``emulator.operations`` by default.

        Raises:
            ValueError: the model does not have one of the operations.
        """
        self._find_jobs = find_jobs
        self._has_moto_resource = has_moto_resource
        self._queue = RequestQueue(_PATIENCE_SECONDS)
        self._operations = find_operations() if operations is None else dict(operations)
        for name in self._operations:
            load_operation(name)

    def has(self, name: str) -> bool:
        """Return whether the emulator itself implements the operation."""
        return name in self._operations

    def preload(self) -> None:
        """Compile every schema, so that the first request of each operation does not wait for it."""
        load_regions()
        for name in self._operations:
            load_operation(name).preload()

    def answer(self, name: str, environ: WSGIEnvironment) -> WireAnswer | None:
        """Run one operation; return None, with the request body still readable, if the resource is moto's.

        Raises:
            AwsError: the request is not valid.
        """
        operation = load_operation(name)
        with self._queue.take():
            region, request = _read_request(operation, environ)
            account_id = environ[ACCOUNT_HEADER]
            has_moto_resource = partial(self._has_moto_resource, account_id, region)
            client_note = describe_untried(environ.get("HTTP_USER_AGENT", ""))
            context = Context(self._find_jobs(account_id), region, _check, has_moto_resource, client_note)
            response = self._operations[name](request, context)
            return None if response is None else operation.encode(response, context.headers)


def _check(name: str, request: dict[str, Any]) -> dict[str, Any]:
    return load_operation(name).decode(dump_json(request))


def check_request(name: str, environ: WSGIEnvironment, has_moto_operation: Callable[[str], bool]) -> None:
    """Validate a request for moto against the model; moto itself checks very little.

    Args:
        name: an operation that the emulator itself does not implement.
        environ: its request, whose body can be read again afterwards.
        has_moto_operation: whether moto implements an operation, by its name in snake case.

    Raises:
        UnknownOperationException: SageMaker does not have it, or neither the emulator nor moto implements it.
        AwsError: the request is not valid.
    """
    if find_operation(name) is None:
        raise UnknownOperationException(f"SageMaker has no operation {name!r}.")
    if not has_moto_operation(xform_name(name)):
        raise UnknownOperationException(f"{name} is an operation of SageMaker that this emulator does not have.")
    _read_request(load_operation(name), environ)


def _read_request(operation: Operation, environ: WSGIEnvironment) -> tuple[str, dict[str, Any]]:
    """Return the region and the parsed request; the body can be read again."""
    region = authenticate(environ, load_regions())
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > MAX_BODY_BYTES:
        text = f"The request has {length} bytes; at most {MAX_BODY_BYTES} are read."
        raise AwsError(text, code="RequestEntityTooLargeException", status=413)
    body: bytes = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = BytesIO(body)
    return region, operation.decode(body)
