"""Bucket policies: validation when set, and evaluation at each request."""

import functools
import json
import logging
from collections.abc import Callable, Container, Mapping
from typing import Any

from flask import has_request_context, request
from moto.core.utils import get_service_model
from moto.s3.exceptions import S3ClientError

from emulator.moto_services.iam.conditions import UnknowableKeyError, conditions_hold, is_operator
from emulator.moto_services.iam.policy_simulation import judge_statements, list_statements
from emulator.moto_services.s3.policy_keys import RequestKeys

logger = logging.getLogger(__name__)

# moto makes actions of methods; these are none of S3's.
_ACTIONS = {"s3:HeadObject": "s3:GetObject", "s3:PostObject": "s3:PutObject"}
_LIST = "s3:ListBucket"
_LIST_ACTIONS = {"versions": "s3:ListBucketVersions", "uploads": "s3:ListBucketMultipartUploads"}
_PATTERNS = ("Action", "NotAction", "Resource", "NotResource")
_REQUIRED = (("Effect",), ("Principal", "NotPrincipal"), ("Action", "NotAction"), ("Resource", "NotResource"))


class MalformedPolicy(S3ClientError):  # noqa: N818 -- the name is S3's
    """The policy is invalid. moto itself accepts any bytes."""

    code = "MalformedPolicy"

    def __init__(self, message: str) -> None:
        super().__init__(self.code, message)


class AccessDenied(S3ClientError):  # noqa: N818 -- the name is S3's
    """A policy or an access control list denies the request."""

    code = "AccessDenied"

    def __init__(self) -> None:
        super().__init__(self.code, "Access Denied")


def saying_denied(respond: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_key_response`` of moto's responses: it denies requests without a body, so without a code for clients."""

    @functools.wraps(respond)
    def respond_or_deny(response: Any, asked: Any, full_url: str) -> Any:
        answer = respond(response, asked, full_url)
        if asked.method not in ("HEAD", "OPTIONS") and isinstance(answer, tuple) and answer[::2] == (403, ""):
            raise AccessDenied
        return answer

    return respond_or_deny


def judging_lists(respond: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_bucket_response`` of moto's responses: a policy may deny a list of objects, versions or uploads.

    moto asks policies about objects only. Other requests for a bucket stay allowed, so that nobody is shut out of a
    bucket by its policy.
    """

    @functools.wraps(respond)
    def judge_and_respond(response: Any, asked: Any, full_url: str) -> Any:
        name = response.parse_bucket_name_from_url(asked, full_url)
        # A list of buckets comes here, too, and needs no model of S3.
        if name and (action := _find_list_action(asked.method, asked.args)):
            from moto.iam.access_control import PermissionResult  # loads AWS's managed policies

            bucket = response.backend.head_bucket(name)
            resource = f"arn:{bucket.partition}:s3:::{bucket.name}"
            if bucket.get_permission(action, resource) == PermissionResult.DENIED:
                if asked.method == "HEAD":
                    return 403, {}, ""
                raise AccessDenied
        return respond(response, asked, full_url)

    return judge_and_respond


def _find_list_action(method: str, query: Container[str]) -> str | None:
    """Return the action of a request that lists what a bucket has; None for another request."""
    if method == "HEAD":
        return _LIST
    if method != "GET":
        return None
    for name, action in _LIST_ACTIONS.items():
        if name in query:
            return action
    return None if any(name in query for name in _find_subresources()) else _LIST


@functools.cache
def _find_subresources() -> frozenset[str]:
    """Find what a GET of a bucket may name in its query in place of a list, such as ``policy``."""
    model = get_service_model("s3")
    asked = [model.operation_model(name).http for name in model.operation_names]
    queries = [each["requestUri"].partition("?") for each in asked if each["method"] == "GET"]
    return frozenset(query.partition("&")[0].partition("=")[0] for path, _, query in queries if path == "/{Bucket}") - {
        "",
        "list-type",
    }


def check_policy(policy: bytes) -> None:
    """Reject policies that S3 rejects, if every later request for the bucket would fail because of them.

    Raises:
        MalformedPolicy: with the text that S3 sends.
    """
    try:
        parsed = json.loads(policy)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise MalformedPolicy("Policies must be valid JSON and the first byte must be '{'")
    if "Statement" not in parsed:
        raise MalformedPolicy("Missing required field Statement")
    for statement in list_statements(parsed):
        _check_statement(statement)


def _check_statement(statement: Any) -> None:
    if not isinstance(statement, dict):
        raise MalformedPolicy("Invalid policy syntax.")
    for choices in _REQUIRED:
        if not any(name in statement for name in choices):
            raise MalformedPolicy(f"Missing required field {choices[0]}")
    if statement["Effect"] not in ("Allow", "Deny"):
        raise MalformedPolicy(f"Invalid effect : {statement['Effect']}")
    for name in _PATTERNS:
        patterns = statement.get(name, [])
        if not all(isinstance(pattern, str) for pattern in (patterns if isinstance(patterns, list) else [patterns])):
            raise MalformedPolicy(f"Policy has invalid {name.removeprefix('Not').lower()}")
    conditions = statement.get("Condition", {})
    if not (isinstance(conditions, dict) and all(isinstance(keys, dict) for keys in conditions.values())):
        raise MalformedPolicy("Conditions must be of type object")
    for name in conditions:
        if not is_operator(name):
            raise MalformedPolicy(f"Invalid Condition type : {name}")


def judge_permission(neutral: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``get_permission`` of moto's buckets, so that patterns and conditions in a policy work as in AWS.

    moto ignores conditions: a Deny of requests without TLS would deny every request. It ignores NotResource, and
    treats a pattern as a regular expression in which only ``*`` is a wildcard. A statement whose condition depends on a
    key that the emulator cannot know has no effect, which is logged once for each key. Nor has one whose principal is a
    text other than ``*``.

    Args:
        neutral: moto's own method; it answers for a bucket without a policy.
    """
    logged: set[str] = set()

    def holds(bucket: Any, statement: Mapping[str, Any]) -> bool:
        conditions, principal = statement.get("Condition"), statement.get("Principal")
        if isinstance(principal, str) and principal != "*":
            return False
        if not conditions or not has_request_context():
            return not conditions
        try:
            return conditions_hold(conditions, RequestKeys(request.environ, bucket.account_id).find)
        except UnknowableKeyError as error:
            if str(error) not in logged:
                logged.add(str(error))
                logger.warning(
                    "Statements of bucket policies with a condition on %s have no effect (the first is of the bucket "
                    "%s): the emulator cannot know that key of a request.",
                    error,
                    bucket.name,
                )
            return False

    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        if bucket.policy is None:
            return neutral(bucket, action, resource)
        from moto.iam.access_control import PermissionResult

        statements = list_statements(json.loads(bucket.policy))
        decision = judge_statements(
            statements, _ACTIONS.get(action, action), resource, functools.partial(holds, bucket)
        )
        known = {"allowed": PermissionResult.PERMITTED, "explicitDeny": PermissionResult.DENIED}
        return known.get(decision, PermissionResult.NEUTRAL)

    return get_permission
