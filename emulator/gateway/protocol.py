"""AWS JSON 1.1, driven by the service model: decoding, checks and encoding."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn, cast

from emulator.exceptions import SerializationException
from emulator.gateway.request_schema import build_validator
from emulator.gateway.violations import raise_violations
from emulator.service_model import load_service_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from botocore.model import ListShape, MapShape, OperationModel, Shape, StructureShape
    from jsonschema.protocols import Validator

    from emulator.exceptions import AwsError

CONTENT_TYPE = "application/x-amz-json-1.1"
# The largest request of the model is far smaller, and far less deeply nested.
MAX_BODY_BYTES = 8 * 1024**2
_MAX_DEPTH = 100
_MAX_TIME_DIGITS = 40


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An encoded answer, without the headers common to all answers; also the WSGI application that sends it."""

    status: int
    headers: dict[str, str]
    body: bytes

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Send the answer; for HEAD, send its length but not its body."""
        headers = {**self.headers, "Content-Length": str(len(self.body))}
        start_response(f"{self.status} {HTTPStatus(self.status).phrase}", list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [self.body]


def find_operation(name: str) -> OperationModel | None:
    """Find the model of ``name``, e.g. ``CreateTrainingJob``; None for an operation SageMaker does not have."""
    model = load_service_model()
    return model.operation_model(name) if name in model.operation_names else None


class Operation:
    """The wire format of one operation. Its schema is compiled on first use."""

    def __init__(self, name: str) -> None:
        """Look up the operation in the model.

        Raises:
            ValueError: the model does not have the operation.
        """
        model = find_operation(name)
        if model is None:
            raise ValueError(f"botocore's model of SageMaker has no operation {name!r}.")
        self.name = name
        self._input: StructureShape | None = model.input_shape
        self._output: StructureShape | None = model.output_shape
        self._validator: Validator | None = None

    def decode(self, body: bytes) -> dict[str, Any]:
        """Parse and validate a request.

        Returns:
            The members as sent, including unknown ones, without nulls. Timestamps are aware datetimes and integers are
            ints, however they were written.

        Raises:
            SerializationException: the body is not a JSON object, or a member has the wrong type.
            ValidationException: the request violates constraints; the message lists all of them.
        """
        request = _parse(body)
        if self._input is None:
            return request
        if not request and not self._input.required_members:
            return request  # there is nothing to check
        raise_violations(self._load_validator(self._input).iter_errors(request), request, list(self._input.members))
        return cast("dict[str, Any]", _decode_numbers(self._input, request))

    def preload(self) -> None:
        """Compile the schema in advance."""
        if self._input is not None:
            self._load_validator(self._input)

    def encode(self, answer: dict[str, Any], headers: Mapping[str, str] | None = None) -> WireAnswer:
        """Encode the members of ``answer`` that the output shape has; omit nulls, write datetimes as epoch seconds.

        Args:
            answer: the members; may contain others.
            headers: headers besides the content type.
        """
        body = b"" if self._output is None else dump_json(_cut(self._output, answer))
        return WireAnswer(200, {"Content-Type": CONTENT_TYPE, **(headers or {})}, body)

    def _load_validator(self, shape: StructureShape) -> Validator:
        if self._validator is None:
            self._validator = build_validator(shape)
        return self._validator


@lru_cache(maxsize=512)
def load_operation(name: str) -> Operation:
    """Build the operation ``name`` once; raise ValueError if the model does not have it."""
    return Operation(name)


def encode_error(error: AwsError) -> WireAnswer:
    """Encode an error. This is the only place that does so for this protocol."""
    headers = {"Content-Type": CONTENT_TYPE, "x-amzn-errortype": error.code}
    return WireAnswer(error.status, headers, dump_json({"__type": error.code, "message": error.message}))


def dump_json(value: Any) -> bytes:
    """Encode ``value`` as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def _parse(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()  # json would decode halves of surrogate pairs, too
        request = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_float) if text.strip() else {}
        if b"\\ud" in body.lower():
            json.dumps(request, ensure_ascii=False).encode()  # half of a surrogate pair is not text
    except (ValueError, RecursionError) as error:
        raise SerializationException(f"The body of the request is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise SerializationException(f"The body of the request is a JSON {type(request).__name__}; send an object.")
    return cast("dict[str, Any]", _drop_nulls(request))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _parse_float(text: str) -> float:
    """Parse a number; one such as 1e400 would become infinity, which neither JSON nor SQLite can store."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _drop_nulls(value: Any, depth: int = 0) -> Any:
    """Drop null members, which count as missing. Nulls in lists stay, to be refused."""
    if depth > _MAX_DEPTH:
        raise SerializationException(f"The body of the request is nested deeper than {_MAX_DEPTH} levels.")
    if isinstance(value, dict):
        return {key: _drop_nulls(entry, depth + 1) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_drop_nulls(entry, depth + 1) for entry in value]
    return value


def _decode_numbers(shape: Shape, value: Any) -> Any:
    match shape.type_name:
        case "structure":
            members = cast("StructureShape", shape).members
            return {k: _decode_numbers(members[k], v) if k in members else v for k, v in value.items()}
        case "list":
            member = cast("ListShape", shape).member
            return [_decode_numbers(member, entry) for entry in value]
        case "map":
            entry_shape = cast("MapShape", shape).value
            return {key: _decode_numbers(entry_shape, entry) for key, entry in value.items()}
        case "timestamp":
            return _decode_time(value)
        case "integer" | "long":
            return int(value)  # in JSON, 5.0 is an integer
        case _:
            return value


def _decode_time(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise SerializationException(
            f"{str(seconds)[:_MAX_TIME_DIGITS]} is not a time: send seconds since 1970-01-01."
        ) from None


def _cut(shape: Shape, value: Any) -> Any:
    match shape.type_name:
        case "structure":
            members = cast("StructureShape", shape).members
            return {k: _cut(member, value[k]) for k, member in members.items() if value.get(k) is not None}
        case "list":
            member = cast("ListShape", shape).member
            return [_cut(member, entry) for entry in value]
        case "map":
            entry_shape = cast("MapShape", shape).value
            return {key: _cut(entry_shape, entry) for key, entry in value.items()}
        case "timestamp" if isinstance(value, datetime):
            return round(value.timestamp(), 3)
        case _:
            return value
