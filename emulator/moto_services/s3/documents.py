"""XML documents of S3 requests, validated against S3's service model.

moto reads documents without checking them: a document of the wrong kind raises an exception, and the answer is 500.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.parsers.expat import ExpatError

import xmltodict
from moto.core.utils import get_service_model
from moto.s3.exceptions import MalformedXML, MissingRequestBody

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from botocore.model import Shape


class _Document(NamedTuple):
    name: str
    shape: Shape


# These may be absent, or given as headers instead.
_OPTIONAL = frozenset({"AccessControlPolicy", "CreateBucketConfiguration"})


def checking(path: str, respond: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``respond``, moto's answer to requests for ``path``, so that the request's document is checked first."""

    @functools.wraps(respond)
    def check_and_respond(response: Any, request: Any, full_url: str) -> Any:
        if request.method in ("PUT", "POST"):
            query = response._get_querystring(request, full_url)  # noqa: SLF001 -- moto's only reader of it
            check_document(request.method, path, query, response.body)
        return respond(response, request, full_url)

    return check_and_respond


def check_document(method: str, path: str, query: Container[str], body: bytes) -> None:
    """Check the body of one request. A body that S3 does not read as a document, such as an object, is accepted.

    Args:
        method: PUT or POST.
        path: ``/{Bucket}`` or ``/{Bucket}/{Key+}``, as in the service model.
        query: the names in the query string.
        body: as received.

    Raises:
        MissingRequestBody, MalformedXML: S3's own errors, with status 400.
    """
    kinds = _load_documents().get((method, path), {})
    document = next((kinds[name] for name in kinds if name and name in query), kinds.get(""))
    if document is None:
        return
    if not body:
        if document.name not in _OPTIONAL:
            raise MissingRequestBody
        return
    try:
        root = xmltodict.parse(body)
    except (ExpatError, ValueError):
        raise MalformedXML from None
    if document.name not in root or not _fits(document.shape, root[document.name]):
        raise MalformedXML


@functools.cache
def _load_documents() -> dict[tuple[str, str], dict[str, _Document | None]]:
    """Map method and path to the documents of their operations, by the query parameter that selects the operation."""
    model = get_service_model("s3")
    found: dict[tuple[str, str], dict[str, _Document | None]] = {}
    for name in model.operation_names:
        operation = model.operation_model(name)
        path, _, query = operation.http["requestUri"].partition("?")
        shape: Any = operation.input_shape
        payload = shape.members.get(shape.serialization.get("payload")) if shape else None
        document = None
        if payload is not None and payload.type_name == "structure":
            document = _Document(payload.serialization["name"], payload)
        found.setdefault((operation.http["method"], path), {})[query.partition("&")[0]] = document
    return found


def _fits(shape: Any, value: Any) -> bool:
    """Check whether ``value``, an element as xmltodict reads it, matches ``shape``. Unknown members are allowed."""
    if shape.type_name == "structure":
        return _fits_structure(shape, value)
    if shape.type_name == "list":
        return _fits_list(shape, value)
    if shape.type_name in ("integer", "long"):
        return isinstance(value, str) and value.strip().lstrip("-").isdecimal()
    # The text of an element with attributes is under #text.
    return value is None or isinstance(value, str) or (isinstance(value, dict) and value.keys() <= {"#text", "@xmlns"})


def _fits_list(shape: Any, value: Any) -> bool:
    if not shape.serialization.get("flattened"):
        if not isinstance(value, dict | None):
            return False
        value = (value or {}).get(shape.member.serialization.get("name", "member"), [])
    return all(_fits(shape.member, each) for each in (value if isinstance(value, list) else [value]))


def _fits_structure(shape: Any, value: Any) -> bool:
    members = {} if value is None else value
    if not isinstance(members, dict):
        return False
    for name, member in shape.members.items():
        attribute = "@" if member.serialization.get("xmlAttribute") else ""
        element = attribute + member.serialization.get("name", name)
        if element in members:
            if not _fits(member, members[element]):
                return False
        elif name in shape.required_members:
            return False
    return True
