"""Tests of IAM actions of requests, and of policy decisions on them."""

import io
import json
from typing import Any

import pytest

from emulator.moto_services.iam.actions import find_asked, find_copied
from emulator.moto_services.iam.policy_simulation import judge


@pytest.mark.parametrize(
    ("service", "method", "path", "query", "headers", "action", "resource"),
    [
        ("s3", "GET", "/b/a/k", "", {}, "s3:GetObject", "arn:aws:s3:::b/a/k"),
        ("s3", "GET", "/b", "list-type=2", {}, "s3:ListBucket", "arn:aws:s3:::b"),
        ("s3", "GET", "/", "", {}, "s3:ListAllMyBuckets", "arn:aws:s3:::*"),
        ("s3", "PUT", "/b/k", "partNumber=1&uploadId=x", {}, "s3:PutObject", "arn:aws:s3:::b/k"),
        ("s3", "PUT", "/b/k", "", {"HTTP_X_AMZ_COPY_SOURCE": "x"}, "s3:PutObject", "arn:aws:s3:::b/k"),
        ("s3", "PUT", "/b", "policy", {}, "s3:PutBucketPolicy", "arn:aws:s3:::b"),
        ("s3", "DELETE", "/k", "", {"HTTP_HOST": "b.localhost:1"}, "s3:DeleteObject", "arn:aws:s3:::b/k"),
        ("s3", "POST", "/b", "delete", {}, "s3:DeleteObject", "arn:aws:s3:::b/*"),
        (
            "lambda",
            "POST",
            "/2015-03-31/functions/f/invocations",
            "",
            {},
            "lambda:InvokeFunction",
            "arn:aws:lambda:r:1:function:f",
        ),
    ],
)
def test_what_a_request_asks_for(
    service: str, method: str, path: str, query: str, headers: dict[str, str], action: str, resource: str
) -> None:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "wsgi.input": io.BytesIO(),
        **headers,
    }
    assert find_asked(environ, service, "r", "1") == (action, [resource])


def test_each_object_that_is_deleted_or_copied_is_asked_for() -> None:
    body = b"<Delete><Object><Key>a/&amp;</Key></Object><Object><Key>keep</Key></Object></Delete>"
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/b",
        "QUERY_STRING": "delete",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    asked = find_asked(environ, "s3", "r", "1")
    assert asked == ("s3:DeleteObject", ["arn:aws:s3:::b/a/&", "arn:aws:s3:::b/keep"])
    assert environ["wsgi.input"].read() == body
    assert find_copied(environ) is None
    copied = find_copied({"HTTP_X_AMZ_COPY_SOURCE": "/other/a%20key?versionId=1"})
    assert copied == ("s3:GetObject", ["arn:aws:s3:::other/a key"])


def test_a_job_is_named_by_the_body() -> None:
    body = json.dumps({"TrainingJobName": "mine"}).encode()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "HTTP_X_AMZ_TARGET": "SageMaker.StopTrainingJob",
        "CONTENT_TYPE": "application/x-amz-json-1.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    expected = ("sagemaker:StopTrainingJob", ["arn:aws:sagemaker:r:1:training-job/mine"])
    assert find_asked(environ, "sagemaker", "r", "1") == expected
    assert environ["wsgi.input"].read() == body


@pytest.mark.parametrize(
    ("effect", "condition", "decision"),
    [
        ("Allow", {"StringEquals": {"aws:RequestedRegion": ["a", "b"]}}, "allowed"),
        ("Allow", {"StringEquals": {"aws:RequestedRegion": "c"}}, "implicitDeny"),
        ("Allow", {"StringNotLike": {"aws:RequestedRegion": "c*"}}, "allowed"),
        ("Allow", {"StringEquals": {"aws:Unheard": "x"}}, "implicitDeny"),
        ("Allow", {"StringEqualsIfExists": {"aws:Unheard": "x"}}, "allowed"),
        ("Allow", {"DateGreaterThan": {"aws:CurrentTime": "x"}}, "implicitDeny"),
        ("Deny", {"DateGreaterThan": {"aws:CurrentTime": "x"}}, "explicitDeny"),
        ("Deny", {"Bool": {"aws:SecureTransport": "false"}}, "implicitDeny"),
        ("Deny", {"StringEquals": {"aws:Unheard": "x", "aws:RequestedRegion": "c"}}, "implicitDeny"),
        ("Allow", {"IpAddress": {"aws:SourceIp": "10.1.0.0/16"}}, "allowed"),
        ("Deny", {"NotIpAddress": {"aws:SourceIp": "10.1.0.0/16"}}, "implicitDeny"),
        ("Allow", {"NumericLessThanEquals": {"s3:max-keys": "10"}}, "implicitDeny"),
        ("Deny", {"ForAnyValue:StringNotEquals": {"aws:Unheard": "x"}}, "explicitDeny"),
        ("Deny", {"ForAnyValue:StringNotEquals": {"s3:prefix": "x"}}, "implicitDeny"),
        ("Allow", {"StringLike": {"aws:RequestedRegion": "${aws:RequestedRegion}"}}, "allowed"),
    ],
)
def test_conditions_hold_or_let_nothing_pass(effect: str, condition: dict[str, Any], decision: str) -> None:
    statement = {"Effect": effect, "Action": "s3:*", "Resource": "*", "Condition": condition}
    context = {"aws:requestedregion": "a", "aws:securetransport": "true", "aws:sourceip": "10.1.2.3"}
    assert judge([json.dumps({"Statement": statement})], "s3:GetObject", "arn:aws:s3:::b/k", context) == decision
