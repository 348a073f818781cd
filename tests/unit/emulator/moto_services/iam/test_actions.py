"""Tests of IAM actions of requests, and of policy decisions on them."""

import io
import json
from typing import Any

import pytest

from emulator.moto_services.iam.actions import find_asked
from emulator.moto_services.iam.policy_simulation import judge


@pytest.mark.parametrize(
    ("service", "method", "path", "query", "headers", "action", "resource"),
    [
        ("s3", "GET", "/b/a/k", "", {}, "s3:GetObject", "arn:aws:s3:::b/a/k"),
        ("s3", "GET", "/b", "list-type=2", {}, "s3:ListBucket", "arn:aws:s3:::b"),
        ("s3", "GET", "/", "", {}, "s3:ListAllMyBuckets", "arn:aws:s3:::*"),
        ("s3", "PUT", "/b/k", "partNumber=1&uploadId=x", {}, "s3:PutObject", "arn:aws:s3:::b/k"),
        ("s3", "PUT", "/b", "policy", {}, "s3:PutBucketPolicy", "arn:aws:s3:::b"),
        ("s3", "DELETE", "/k", "", {"HTTP_HOST": "b.localhost:1"}, "s3:DeleteObject", "arn:aws:s3:::b/k"),
        ("s3", "DELETE", "/k", "", {"HTTP_HOST": "a.b.s3.LOCALHOST.:1"}, "s3:DeleteObject", "arn:aws:s3:::a.b/k"),
        ("s3", "GET", "/b/k", "", {"HTTP_HOST": "lab.example.com:1"}, "s3:GetObject", "arn:aws:s3:::b/k"),
        ("s3", "GET", "/b/k", "", {"HTTP_HOST": "s3.localhost"}, "s3:GetObject", "arn:aws:s3:::b/k"),
        ("s3", "GET", "/b/k", "versionId=1", {}, "s3:GetObjectVersion", "arn:aws:s3:::b/k"),
        ("s3", "HEAD", "/b/k", "versionId=1", {}, "s3:GetObjectVersion", "arn:aws:s3:::b/k"),
        ("s3", "DELETE", "/b/k", "versionId=1", {}, "s3:DeleteObjectVersion", "arn:aws:s3:::b/k"),
        ("s3", "PUT", "/b/k", "tagging&versionId=1", {}, "s3:PutObjectVersionTagging", "arn:aws:s3:::b/k"),
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
    assert find_asked(environ, service, "r", "1") == [(action, [resource])]


def ask(service: str, body: bytes, method: str = "POST", path: str = "/", **more: str) -> list[tuple[str, list[str]]]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **more,
    }
    found = find_asked(environ, service, "r", "1")
    assert environ["wsgi.input"].read() == body, "it can be read again"
    return [(each.action, each.resources) for each in found]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            "<Object><Key>a/&amp;</Key></Object><Object><Key >keep</Key ></Object>",
            [("s3:DeleteObject", ["arn:aws:s3:::b/a/&", "arn:aws:s3:::b/keep"])],
        ),
        ("<Object><Key><![CDATA[secret/b]]></Key></Object>", [("s3:DeleteObject", ["arn:aws:s3:::b/secret/b"])]),
        (
            "<Object><Key>a</Key></Object><Object><Key>b</Key><VersionId>1</VersionId></Object>",
            [("s3:DeleteObject", ["arn:aws:s3:::b/a"]), ("s3:DeleteObjectVersion", ["arn:aws:s3:::b/b"])],
        ),
    ],
)
def test_each_object_that_is_deleted_is_asked_for(entries: str, expected: list[Any]) -> None:
    assert ask("s3", f"<Delete>{entries}</Delete>".encode(), path="/b", QUERY_STRING="delete") == expected


@pytest.mark.parametrize("body", [b"", b"<Delete>", b"<Delete></Delete>", b"<Delete><Object/></Delete>", b"{}"])
def test_objects_that_cannot_be_read_are_not_deleted(body: bytes) -> None:
    with pytest.raises(ValueError, match="objects to delete cannot be read"):
        ask("s3", body, path="/b", QUERY_STRING="delete")


@pytest.mark.parametrize(
    ("source", "action", "resource"),
    [
        ("/other/a%20key?versionId=1", "s3:GetObjectVersion", "other/a key"),
        ("other/a%3Bb%23c", "s3:GetObject", "other/a;b#c"),
    ],
)
def test_the_source_of_a_copy_is_asked_for(source: str, action: str, resource: str) -> None:
    asked = ask("s3", b"", "PUT", "/b/k", HTTP_X_AMZ_COPY_SOURCE=source)
    assert asked == [("s3:PutObject", ["arn:aws:s3:::b/k"]), (action, [f"arn:aws:s3:::{resource}"])]


@pytest.mark.parametrize("source", ["//mine/victim/k", "secret/key;x", "secret/key#x", "http://x/secret/key"])
def test_a_source_that_is_more_than_a_path_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="The source of the copy is not a bucket and a key"):
        ask("s3", b"", "PUT", "/b/k", HTTP_X_AMZ_COPY_SOURCE=source)


@pytest.mark.parametrize(
    ("operation", "members", "resource"),
    [
        ("StopTrainingJob", {"TrainingJobName": "mine"}, "training-job/mine"),
        ("StopTrainingJob", {"TrainingJOBName": "mine", "TrainingJobName": "victim"}, "training-job/victim"),
        ("CreateTransformJob", {"ModelName": "m", "TransformJobName": "t"}, "transform-job/t"),
        ("CreateEndpoint", {"EndpointConfigName": "c", "EndpointName": "e"}, "endpoint/e"),
        ("CreateEndpointConfig", {"EndpointConfigName": "c"}, "endpoint-config/c"),
        ("DisassociateTrialComponent", {"TrialName": "t", "TrialComponentName": "c"}, "trial-component/c"),
    ],
)
def test_a_resource_is_named_by_the_operation_s_own_member(
    operation: str, members: dict[str, str], resource: str
) -> None:
    target = {"HTTP_X_AMZ_TARGET": f"SageMaker.{operation}", "CONTENT_TYPE": "application/x-amz-json-1.1"}
    asked = ask("sagemaker", json.dumps(members).encode(), **target)
    assert asked == [(f"sagemaker:{operation}", [f"arn:aws:sagemaker:r:1:{resource}"])]


def test_a_function_is_named_by_the_path() -> None:
    event = json.dumps({"FunctionName": "allowed"}).encode()
    for path, action in (("invocations", "InvokeFunction"), ("code", "UpdateFunctionCode")):
        method = "POST" if path == "invocations" else "PUT"
        asked = ask("lambda", event, method, f"/2015-03-31/functions/victim/{path}")
        assert asked == [(f"lambda:{action}", ["arn:aws:lambda:r:1:function:victim"])]


def test_a_group_is_what_its_members_change() -> None:
    form = {"CONTENT_TYPE": "application/x-www-form-urlencoded"}
    for operation, named in (("AddUserToGroup", "group/admins"), ("ListGroupsForUser", "user/me")):
        body = f"Action={operation}&Version=2010-05-08&UserName=me"
        body += "&GroupName=admins" if operation == "AddUserToGroup" else ""
        assert ask("iam", body.encode(), **form) == [(f"iam:{operation}", [f"arn:aws:iam::1:{named}"])]


@pytest.mark.parametrize(
    ("members", "resource"),
    [
        ({"logGroupName": "/g", "logStreamName": "s"}, "/g:log-stream:s"),
        ({"logGroupName": "/g"}, "/g:*"),
        ({"logGroupIdentifier": "arn:aws:logs:r:1:log-group:/g:*"}, "/g:*"),
    ],
)
def test_log_groups_are_named_as_policies_name_them(members: dict[str, str], resource: str) -> None:
    target = {"HTTP_X_AMZ_TARGET": "Logs_20140328.GetLogEvents", "CONTENT_TYPE": "application/x-amz-json-1.1"}
    asked = ask("logs", json.dumps(members).encode(), **target)
    assert asked == [("logs:GetLogEvents", [f"arn:aws:logs:r:1:log-group:{resource}"])]


@pytest.mark.parametrize(
    ("effect", "condition", "decision"),
    [
        ("Allow", {"StringEquals": {"aws:RequestedRegion": ["a", "b"]}}, "allowed"),
        ("Allow", {"StringEquals": {"aws:RequestedRegion": "c"}}, "implicitDeny"),
        ("Allow", {"StringNotLike": {"aws:RequestedRegion": "c*"}}, "allowed"),
        ("Allow", {"StringEquals": {"aws:Unheard": "x"}}, "implicitDeny"),
        ("Allow", {"StringEqualsIfExists": {"aws:Unheard": "x"}}, "allowed"),
        ("Allow", {"StringNotEquals": {"s3:x-amz-acl": "public-read"}}, "implicitDeny"),
        ("Allow", {"StringEqualsIfExists": {"s3:x-amz-server-side-encryption": "AES256"}}, "implicitDeny"),
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
