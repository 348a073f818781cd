"""Bucket policies: validation when set, and evaluation at each request."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from moto.s3.exceptions import S3ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

_PATTERNS = ("Action", "NotAction", "Resource", "NotResource")
_REQUIRED = (("Effect",), ("Principal", "NotPrincipal"), ("Action", "NotAction"), ("Resource", "NotResource"))


class MalformedPolicy(S3ClientError):  # noqa: N818 -- the name is S3's
    """The policy is invalid. moto itself accepts any bytes."""

    code = "MalformedPolicy"

    def __init__(self, message: str) -> None:
        super().__init__(self.code, message)


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
    for statement in _statements(parsed):
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


def judge_permission(neutral: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``get_permission`` of moto's buckets, so that patterns in a policy work as in AWS.

    moto treats a pattern as a regular expression in which only ``*`` is a wildcard. ``arn:aws:s3:::b/a(1`` raises an
    exception at every request for an object of the bucket.

    Args:
        neutral: moto's own method; it answers for a bucket without a policy.
    """

    def get_permission(bucket: Any, action: str, resource: str) -> Any:
        if bucket.policy is None:
            return neutral(bucket, action, resource)
        from moto.iam.access_control import IAMPolicy

        policy = json.loads(bucket.policy)
        for statement in _statements(policy):
            for name in _PATTERNS:
                if name in statement:
                    patterns = statement[name]
                    escaped = [_escape(each) for each in (patterns if isinstance(patterns, list) else [patterns])]
                    statement[name] = escaped
        return IAMPolicy(json.dumps(policy)).is_action_permitted(action, resource)

    return get_permission


def _statements(policy: dict[str, Any]) -> list[Any]:
    found = policy["Statement"]
    return found if isinstance(found, list) else [found]


def _escape(pattern: str) -> str:
    """Escape the pattern for a regular expression, except ``*``, which moto turns into ``.*``."""
    return "".join("." if letter == "?" else "*" if letter == "*" else re.escape(letter) for letter in pattern)
