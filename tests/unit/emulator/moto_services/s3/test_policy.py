import json
from typing import Any

import pytest
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from emulator.moto_services.s3.policy import MalformedPolicy, check_policy, judge_permission

ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}
get_permission = judge_permission(FakeBucket.get_permission)


def make_bucket() -> Any:
    bucket_class: Any = FakeBucket  # moto makes them though it declares one of their members abstract
    return bucket_class("b", "123456789012", "us-east-1")


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ALLOW.items() if key != name}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (b"", "must be valid JSON"),
        (b"\xff", "must be valid JSON"),
        (b"[]", "must be valid JSON"),
        (b'{"a":' * 100_000, "must be valid JSON"),
        ({}, "Missing required field Statement"),
        ({"Statement": 5}, "Invalid policy syntax"),
        ({"Statement": ["s3:*"]}, "Invalid policy syntax"),
        *(({"Statement": [without(name)]}, f"Missing required field {name}") for name in ALLOW),
        ({"Statement": [{**ALLOW, "Effect": "Perhaps"}]}, "Invalid effect : Perhaps"),
        ({"Statement": [{**ALLOW, "Action": 5}]}, "invalid action"),
        ({"Statement": [{**ALLOW, "Resource": ["*", {}]}]}, "invalid resource"),
        ({"Statement": [{**ALLOW, "Condition": 5}]}, "Conditions"),
        ({"Statement": {**ALLOW, "Condition": {"Bool": 5}}}, "Conditions"),
        (
            {"Statement": {**ALLOW, "Condition": {"StringEqual": {"s3:prefix": "a"}}}},
            "Invalid Condition type : StringEqual",
        ),
    ],
)
def test_what_is_not_a_policy_is_refused(policy: Any, message: str) -> None:
    with pytest.raises(MalformedPolicy, match=message):
        check_policy(policy if isinstance(policy, bytes) else json.dumps(policy).encode())


@pytest.mark.parametrize(
    "policy",
    [
        {"Statement": []},
        {"Statement": ALLOW},
        {"Version": "2012-10-17", "Statement": [ALLOW, {**without("Action"), "NotAction": ["s3:Get*"]}]},
    ],
)
def test_policies_pass_and_can_be_judged_by(policy: Any) -> None:
    bucket = make_bucket()
    bucket.policy = json.dumps(policy).encode()
    check_policy(bucket.policy)
    expected = PermissionResult.PERMITTED if policy["Statement"] else PermissionResult.NEUTRAL
    assert get_permission(bucket, "s3:GetObject", "arn:aws:s3:::b/x") is expected


def test_a_deny_of_all_other_resources_leaves_the_named_ones() -> None:
    bucket = make_bucket()
    deny = {**without("Resource"), "Effect": "Deny", "NotResource": "arn:aws:s3:::b/public/*"}
    bucket.policy = json.dumps({"Statement": [ALLOW, deny]}).encode()
    assert get_permission(bucket, "s3:GetObject", "arn:aws:s3:::b/public/x") is PermissionResult.PERMITTED
    assert get_permission(bucket, "s3:GetObject", "arn:aws:s3:::b/x") is PermissionResult.DENIED


def test_a_statement_for_somebody_is_not_one_for_everybody() -> None:
    bucket = make_bucket()
    deny = {**ALLOW, "Effect": "Deny", "Principal": "arn:aws:iam::123456789012:user/ann"}
    bucket.policy = json.dumps({"Statement": [ALLOW, deny]}).encode()
    assert get_permission(bucket, "s3:GetObject", "arn:aws:s3:::b/x") is PermissionResult.PERMITTED


@pytest.mark.parametrize(
    ("pattern", "key", "fits"),
    [
        ("a(1", "a(1", True),
        ("a(1", "b", False),
        ("a.b", "acb", False),
        ("a?b", "acb", True),
        ("a*(", "abc(", True),
        ("[", "[", True),
    ],
)
def test_patterns_have_two_wildcards_and_no_other(pattern: str, key: str, fits: bool) -> None:
    bucket = make_bucket()
    assert get_permission(bucket, "s3:GetObject", "arn:aws:s3:::b/x") is PermissionResult.NEUTRAL
    bucket.policy = json.dumps({"Statement": [{**ALLOW, "Resource": [f"arn:aws:s3:::b/{pattern}"]}]}).encode()
    expected = PermissionResult.PERMITTED if fits else PermissionResult.NEUTRAL
    assert get_permission(bucket, "s3:GetObject", f"arn:aws:s3:::b/{key}") is expected
