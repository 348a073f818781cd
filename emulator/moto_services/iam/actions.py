"""IAM action and resource of a request.

For example ``s3:GetObject`` on ``arn:aws:s3:::bucket/key``.
"""

import json
import re
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlparse
from wsgiref.types import WSGIEnvironment
from xml.parsers.expat import ExpatError

from emulator.moto_services.service_requests import find_model, list_operations
from emulator.security.hosts import find_bucket_in_host

# The IAM actions whose names differ from the names of the API operations.
_S3_ACTIONS = {
    "HeadObject": "GetObject", "ListObjects": "ListBucket", "ListObjectsV2": "ListBucket", "HeadBucket": "ListBucket",
    "ListBuckets": "ListAllMyBuckets", "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject", "CopyObject": "PutObject", "UploadPartCopy": "PutObject",
    "ListMultipartUploads": "ListBucketMultipartUploads", "ListParts": "ListMultipartUploadParts",
    "DeleteObjects": "DeleteObject", "ListObjectVersions": "ListBucketVersions", "SelectObjectContent": "GetObject",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration", "GetBucketNotificationConfiguration":
    "GetBucketNotification", "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration", "PutBucketNotificationConfiguration": "PutBucketNotification",
    "GetBucketEncryption": "GetEncryptionConfiguration", "PutBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketEncryption": "PutEncryptionConfiguration", "GetBucketReplication": "GetReplicationConfiguration",
    "GetBucketCors": "GetBucketCORS", "PutBucketCors": "PutBucketCORS", "DeleteBucketCors": "PutBucketCORS",
    "DeleteBucketTagging": "PutBucketTagging", "GetObjectAttributes": "GetObject",
}  # fmt: skip
_LAMBDA_ACTIONS = {
    "Invoke": "InvokeFunction",
    "InvokeAsync": "InvokeFunction",
    "InvokeWithResponseStream": "InvokeFunction",
}
_PREFIXES = {"monitoring": "cloudwatch", "email": "ses"}
_SMALL_BODY_BYTES = 8 * 1024**2
# Operations on a version of an object are actions of their own.
_VERSION_ACTIONS = {
    **{f"{verb}Object": f"{verb}ObjectVersion" for verb in ("Get", "Delete")},
    **{f"{verb}ObjectTagging": f"{verb}ObjectVersionTagging" for verb in ("Get", "Put", "Delete")},
    **{f"{verb}ObjectAcl": f"{verb}ObjectVersionAcl" for verb in ("Get", "Put")},
}
# A request member that names a SageMaker resource, such as TrainingJobName. The resource type in the ARN is part of it.
_SAGEMAKER_NAME = re.compile(r"(?P<kind>[A-Z]\w*?)(Job|Config|Package|Group|Component)?Name")


class Asked(NamedTuple):
    """The IAM action and the resources of a request.

    Attributes:
        action: the action as policies name it, such as ``s3:GetObject``.
        resources: the ARNs of the resources. If they are unknown, it is the ARN of all resources of the service.
    """

    action: str
    resources: list[str]


def find_asked(environ: WSGIEnvironment, service: str, region: str, account: str) -> list[Asked]:
    """Determine the IAM actions of a request, each with its resources.

    A copy needs the permission to read its source, in addition to the permission to write.

    Args:
        environ: the request. Its body can be read again afterwards.
        service: the service in the signature.
        region: the region in the signature.
        account: the account of the signer.

    Raises:
        ValueError: the request names several operations, or its body is not one that clients send.
    """
    prefix = _PREFIXES.get(service, service)
    if service == "s3":
        return _find_of_s3(environ)
    operations = list_operations(environ)
    model = find_model(service)
    members: dict[str, Any] = {}
    if not operations or (model is not None and str(model.metadata["protocol"]).startswith("rest")):
        operation, members = find_rest_operation(environ, service, environ.get("PATH_INFO", "/"))
        operations |= set() if operation is None else {operation}
    if len(operations) > 1:
        raise ValueError(f"The request names several operations: {', '.join(sorted(operations))}.")
    operation = next(iter(operations), "")
    if service == "lambda" and operation in _LAMBDA_ACTIONS:  # its body is the event, and not members
        return [Asked(f"lambda:{_LAMBDA_ACTIONS[operation]}", _find_resources("lambda", region, account, members, ""))]
    # What the path names is what is served, whatever else the request says. So is no member that the operation lacks.
    members = _keep_known(model, operation, _read_members(environ)) | members
    return [Asked(f"{prefix}:{operation}", _find_resources(prefix, region, account, members, operation))]


def _keep_known(model: Any, operation: str, members: dict[str, Any]) -> dict[str, Any]:
    """Keep the members that an operation has, in the order of its model."""
    if model is None or operation not in model.operation_names:
        return members
    shape = model.operation_model(operation).input_shape
    names = [] if shape is None else list(shape.members)
    if str(model.metadata["protocol"]) in ("query", "ec2"):  # lists and structures have names such as Tags.member.1
        return {name: value for name, value in members.items() if name.partition(".")[0] in names}
    return {name: members[name] for name in names if name in members}


def find_s3_path(environ: WSGIEnvironment) -> str:
    """Return the path of an S3 request in path style, ``/bucket/key``, even if the bucket is in the host name."""
    path: str = environ.get("PATH_INFO", "/").encode("latin-1").decode(errors="replace")
    bucket = find_bucket_in_host(environ.get("HTTP_HOST", ""))
    return path if bucket is None else f"/{bucket}{path}"


def _find_of_s3(environ: WSGIEnvironment) -> list[Asked]:
    operation, members = find_rest_operation(environ, "s3", find_s3_path(environ))
    bucket, key = members.get("Bucket", ""), members.get("Key", "")
    if operation == "DeleteObjects":
        return _find_deleted(environ, bucket)
    action = _S3_ACTIONS.get(operation or "", operation or "")
    if "versionId" in dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)):
        action = _VERSION_ACTIONS.get(action, action)
    resource = f"arn:aws:s3:::{bucket}/{key}" if key else f"arn:aws:s3:::{bucket or '*'}"
    return [Asked(f"s3:{action}", [resource]), *_find_copied(environ)]


def _find_deleted(environ: WSGIEnvironment, bucket: str) -> list[Asked]:
    """Read the objects and versions that DeleteObjects names, as moto reads them.

    Raises:
        ValueError: it cannot be read, or is too large.
    """
    import xmltodict

    try:
        found = xmltodict.parse(_read_body(environ), strip_whitespace=False)["Delete"]["Object"]
        entries = [(each["Key"] or "", "VersionId" in each) for each in (found if isinstance(found, list) else [found])]
    except (ExpatError, LookupError, TypeError) as error:
        raise ValueError(f"The objects to delete cannot be read: {error}") from error
    return [
        Asked(f"s3:DeleteObject{'Version' if of_version else ''}", [f"arn:aws:s3:::{bucket}/{key}" for key in keys])
        for of_version in (False, True)
        if (keys := [key for key, has_version in entries if has_version is of_version])
    ]


def _find_copied(environ: WSGIEnvironment) -> list[Asked]:
    """Return the action on the source of a copy, which moto reads from the header as an address without a host.

    Raises:
        ValueError: the header names more than a path and a version.
    """
    source = environ.get("HTTP_X_AMZ_COPY_SOURCE")
    if source is None:
        return []
    parsed = urlparse(source)
    if parsed.scheme or parsed.netloc or parsed.params or parsed.fragment:
        raise ValueError(f"The source of the copy is not a bucket and a key in URL encoding: {source[:200]}")
    action = "GetObjectVersion" if "versionId" in dict(parse_qsl(parsed.query, keep_blank_values=True)) else "GetObject"
    return [Asked(f"s3:{action}", [f"arn:aws:s3:::{unquote(parsed.path).lstrip('/')}"])]


def find_rest_operation(environ: WSGIEnvironment, service: str, path: str) -> tuple[str | None, dict[str, Any]]:
    """Find the operation of a REST request by its method, path, query and headers.

    Returns:
        The operation's name (None if no operation matches) and the request members in the path.
    """
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    best: tuple[int, str, dict[str, Any]] | None = None
    for route in _load_routes(service).get(environ["REQUEST_METHOD"], ()):
        found = route.path.fullmatch(path)
        if found is None or not all(query.get(name) == value for name, value in route.literals):
            continue
        if any(name not in query for name in route.queries) or any(name not in environ for name in route.headers):
            continue
        weight = 2 * len(route.literals) + len(route.queries) + len(route.headers)
        if best is None or weight > best[0]:
            names = zip(route.names, found.groups(), strict=True)
            best = weight, route.operation, {name: unquote(value) for name, value in names}
    return (None, {}) if best is None else best[1:]


class _Route(NamedTuple):
    operation: str
    path: re.Pattern[str]
    names: tuple[str, ...]
    literals: tuple[tuple[str, str], ...]
    queries: tuple[str, ...]
    headers: tuple[str, ...]


@lru_cache(maxsize=32)
def _load_routes(service: str) -> dict[str, list[_Route]]:
    """Load the routes of a service's operations from botocore's model, by HTTP method."""
    model = find_model(service)
    routes: dict[str, list[_Route]] = {}
    for name in model.operation_names if model is not None else ():
        assert model is not None
        operation = model.operation_model(name)
        template, _, literal = str(operation.http.get("requestUri", "/")).partition("?")
        parts = re.split(r"\{([^}]+)\}", template)
        pattern = "".join(
            re.escape(part) if number % 2 == 0 else ("(.+)" if part.endswith("+") else "([^/]+)")
            for number, part in enumerate(parts)
        )
        shape = operation.input_shape
        required = shape.required_members if shape is not None else []
        places: dict[str, list[str]] = {"querystring": [], "header": []}
        for member in required:
            described = shape.members[member].serialization  # type: ignore[union-attr]
            if (where := described.get("location")) in places:
                places[where].append(described.get("name", member))
        routes.setdefault(str(operation.http.get("method", "POST")), []).append(
            _Route(
                name,
                re.compile(f"{pattern}/?" if not template.endswith("+}") else pattern, re.DOTALL),
                tuple(part.rstrip("+") for part in parts[1::2]),
                tuple(parse_qsl(literal, keep_blank_values=True)),
                tuple(places["querystring"]),
                tuple(f"HTTP_{each.upper().replace('-', '_')}" for each in places["header"]),
            )
        )
    return routes


def _read_members(environ: WSGIEnvironment) -> dict[str, Any]:
    """Read the members of a request from its body, which may be a form or JSON.

    If there is no body, or a large one, they are read from the query string.
    """
    body = _read_body(environ)
    if not body:
        return dict(parse_qsl(environ.get("QUERY_STRING", "")))
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode(errors="replace")))
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_body(environ: WSGIEnvironment) -> bytes:
    """Read a body, which can be read again afterwards. A large body is not read, and the result is empty."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 < length <= _SMALL_BODY_BYTES:
        return b""
    body: bytes = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = BytesIO(body)
    return body


def _find_resources(prefix: str, region: str, account: str, members: dict[str, Any], operation: str) -> list[str]:
    """Determine the ARNs of a request's resources.

    They are built from the names in the request for SageMaker resources, functions, queues, log groups, roles, users
    and groups. For other resources, they are the ARNs in the request.
    """
    own = f"arn:aws:{prefix}:{region}:{account}:"
    if prefix == "sagemaker" and (named := _find_name(members, operation)) is not None:
        kind, value = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", named[0]).lower(), named[1]
        return [f"{own}{kind}/{value.lower()}", f"{own}{kind}/{value}"][: 1 if value == value.lower() else 2]
    if prefix == "lambda" and (name := members.get("FunctionName")):
        return [name if str(name).startswith("arn:") else f"{own}function:{name}"]
    if prefix == "sqs" and (url := members.get("QueueUrl")):
        return [f"{own}{str(url).rstrip('/').rpartition('/')[2]}"]
    if prefix == "logs" and (name := members.get("logGroupName") or members.get("logGroupIdentifier")):
        group = str(name) if str(name).startswith("arn:") else f"{own}log-group:{name}"
        stream = members.get("logStreamName")
        return [f"{group.removesuffix(':*')}:{'*' if stream is None else f'log-stream:{stream}'}"]
    if prefix == "iam":
        # A user who joins or leaves a group is not what changes.
        for kind in ("Group", "User") if operation.endswith("Group") else ("Role", "User", "Group"):
            if name := members.get(f"{kind}Name"):
                return [f"arn:aws:iam::{account}:{kind.lower()}/{name}"]
    named_arns = [value for value in members.values() if isinstance(value, str) and value.startswith("arn:")]
    return named_arns or [f"{own}*"]


def _find_name(members: dict[str, Any], operation: str) -> tuple[str, str] | None:
    """Find the kind and the name of the SageMaker resource that an operation is about.

    Of several names, it is the one whose kind is part of the operation's name, such as TransformJobName and ModelName
    of CreateTransformJob; the longest such kind, or else the first name.
    """
    found = [
        (f"{match['kind']}{match[2] or ''}", value)
        for member, value in members.items()
        if isinstance(value, str) and (match := _SAGEMAKER_NAME.fullmatch(member))
    ]
    return max(found, key=lambda each: len(each[0]) if each[0] in operation else 0, default=None)
