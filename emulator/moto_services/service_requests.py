"""Operation and protocol of requests to moto's services, and error encoding."""

import functools
import gzip
import json
import re
import uuid
import zlib
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import WSGIEnvironment

import xmltodict
from botocore.model import ServiceModel
from moto.core.utils import get_service_model
from werkzeug.wrappers import Response

# botocore's names of services whose name differs in moto or in the signature.
_MODELS = {"awslambda": "lambda", "monitoring": "cloudwatch", "states": "stepfunctions", "email": "ses"}
_READS = ("Describe", "List", "Get", "Head", "Search", "Lookup", "BatchGet", "Query", "Scan", "Filter", "Simulate")
# Operations that change something in spite of their names, and operations whose changes are stored elsewhere.
_CHANGES, _KEEPS_NOTHING = frozenset({"GetId", "GetAuthorizationToken"}), frozenset({"PutEvents", "StartQuery"})
_RPC_PATH = re.compile(r"/service/[^/]+/operation/(?P<operation>\w+)")
_FORM = "application/x-www-form-urlencoded"
_SMALL_FORM_BYTES = 2 * 1024**2
# Error codes of services for bad input, the most common first. Each service's model contains one of them.
_BAD_INPUT = (
    "ValidationException", "ValidationError", "InvalidParameterValueException", "InvalidParameterException",
    "InvalidParameter", "InvalidParameterValue", "InvalidRequestException", "BadRequestException", "InvalidInput",
    "InvalidInputException", "InvalidRequest", "InvalidArgumentException",
)  # fmt: skip
_BY_PROTOCOL = {"query": "ValidationError", "ec2": "InvalidParameterValue", "rest-xml": "InvalidRequest"}


def read_operation(environ: WSGIEnvironment) -> str | None:
    """Read the operation's name, as moto does; None if only the method and the path identify it.

    The body can be read again.
    """
    texts = [environ.get("QUERY_STRING", "")]
    length = environ.get("CONTENT_LENGTH") or "0"
    is_form = environ.get("CONTENT_TYPE", "").lower().startswith(_FORM)
    if is_form and length.isdecimal() and int(length) <= _SMALL_FORM_BYTES:
        body = environ["wsgi.input"].read(int(length))
        environ["wsgi.input"] = BytesIO(body)
        texts.insert(0, body.decode(errors="replace"))
    for text in texts:
        if "Action=" in text and (actions := parse_qs(text).get("Action")):
            return str(actions[0])
    return next(iter(_list_fixed_names(environ)), None)


def list_operations(environ: WSGIEnvironment) -> set[str]:
    """List every operation that a request of a service other than S3 names. AWS's clients name one at most.

    moto takes the name from the first place that has one, and looks at more places than clients use. The body can be
    read again.

    Raises:
        ValueError: The body is not one that clients send.
    """
    if "HTTP_TRANSFER_ENCODING" in environ or environ.get("CONTENT_TYPE", "").lower().startswith("multipart/"):
        raise ValueError("The body is sent in chunks or parts.")
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = BytesIO(body)
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").lower()
    if encoding == "gzip":
        with suppress(OSError, EOFError, zlib.error):  # moto does not read it either
            body = gzip.decompress(body)
    elif encoding not in ("identity", "aws-chunked", ""):
        raise ValueError(f"The body is encoded as {encoding}.")
    names = set(_list_fixed_names(environ))
    for text in (environ.get("QUERY_STRING", ""), body.decode(errors="replace")):
        names.update(parse_qs(text).get("Action", ()))
    return names | ({environ["HTTP_ACTION"]} if "HTTP_ACTION" in environ else set())


def _list_fixed_names(environ: WSGIEnvironment) -> Iterator[str]:
    """Yield the operations that the path of Smithy's RPC and the header X-Amz-Target name."""
    if found := _RPC_PATH.fullmatch(environ.get("PATH_INFO", "")):
        yield str(found["operation"])
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        yield str(target).rpartition(".")[2]


def only_reads(environ: WSGIEnvironment, operation: str | None) -> bool:
    """Check whether a request changes nothing that must be stored."""
    if operation is None:
        return environ["REQUEST_METHOD"] in ("GET", "HEAD", "OPTIONS")
    reads = operation.startswith(_READS) and operation not in _CHANGES
    return reads or operation in _KEEPS_NOTHING


def encode_error(service: str, environ: WSGIEnvironment, code: str, message: str, status: int) -> Response:
    """Encode an error of ``service`` (its name in moto or in the signature) as its clients expect it."""
    model, request_id = find_model(service), str(uuid.uuid4())
    protocol = find_protocol(model, environ)
    headers = {"x-amzn-RequestId": request_id}
    error = {"Code": code, "Message": "".join(letter if letter.isprintable() else " " for letter in message)}
    if protocol.startswith("rest-xml") or protocol in ("query", "ec2"):
        if service == "s3":
            document: dict[str, Any] = {"Error": {**error, "RequestId": request_id}}
        elif protocol == "ec2":
            document = {"Response": {"Errors": {"Error": error}, "RequestID": request_id}}
        else:
            kind = "Sender" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "Receiver"
            namespace = {"@xmlns": model.metadata["xmlNamespace"]} if model and "xmlNamespace" in model.metadata else {}
            document = {"ErrorResponse": {**namespace, "Error": {"Type": kind, **error}, "RequestId": request_id}}
        return Response(xmltodict.unparse(document), status, headers, content_type="text/xml")
    headers["x-amzn-ErrorType"] = code
    body = json.dumps({"__type": code, "message": message})
    version = model.metadata.get("jsonVersion", "1.1") if model else "1.1"
    kind = "application/json" if protocol == "rest-json" else f"application/x-amz-json-{version}"
    return Response(body, status, headers, content_type=kind)


def find_bad_input_code(service: str, environ: WSGIEnvironment, operation: str | None, *, is_xml: bool) -> str:
    """Find the service's error code for a request that it cannot parse.

    ``is_xml`` says that the body should be XML, but is malformed.
    """
    model = find_model(service)
    if model is None:
        return _BAD_INPUT[0]
    if service == "s3":
        return "MalformedXML" if is_xml else "InvalidRequest"
    known = operation in model.operation_names
    shapes = model.operation_model(operation).error_shapes if known else model.error_shapes  # type: ignore[arg-type]
    names = {str(shape.metadata.get("error", {}).get("code", shape.name)) for shape in shapes}
    fallback = _BY_PROTOCOL.get(find_protocol(model, environ), _BAD_INPUT[0])
    return next((name for name in _BAD_INPUT if name in names), fallback)


def find_protocol(model: ServiceModel | None, environ: WSGIEnvironment) -> str:
    """Find which of its protocols a request to a service uses; JSON if botocore does not know the service."""
    if model is None:
        return "json"
    protocols = model.metadata.get("protocols", [model.metadata["protocol"]])
    if environ.get("CONTENT_TYPE", "").startswith(_FORM) and "query" in protocols:
        return "query"
    if "HTTP_X_AMZ_TARGET" in environ and "json" in protocols:
        return "json"
    return str(model.metadata["protocol"])


@functools.lru_cache(maxsize=32)
def find_model(service: str) -> ServiceModel | None:
    """Find botocore's model of a service; None if there is none with this name."""
    from botocore.exceptions import UnknownServiceError
    from moto.backends import get_backend, list_of_moto_modules

    name = _MODELS.get(service, service)
    if service not in _MODELS and service in list_of_moto_modules():
        find: Any = get_backend
        with suppress(ImportError, AttributeError):  # a package is missing, or the module is not a service
            name = str(find(service).service_name)
    try:
        found: ServiceModel = get_service_model(name)
    except UnknownServiceError:
        return None
    return found
