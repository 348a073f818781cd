"""Conditions of bucket policies, asked by boto3 over HTTP."""

import contextlib
import json
import logging
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.store import MotoStore
from emulator.moto_services.wsgi import MotoApplication
from tests.boto3_client import make_client


@pytest.fixture(scope="module")
def s3(fresh_moto: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    store = MotoStore(tmp_path_factory.mktemp("moto"))
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    yield make_client(f"http://{LOOPBACK}:{listener.port}", "s3")
    listener.close()
    store.close()


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


def deny(s3: Any, bucket: str, condition: dict[str, Any], action: str = "s3:PutObject") -> None:
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": f"arn:aws:s3:::{bucket}/*",
        "Condition": condition,
    }
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def may_put(s3: Any, bucket: str, **members: Any) -> bool:
    try:
        s3.put_object(Bucket=bucket, Key="key", Body=b"1", **members)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 403:
            raise
        return False
    return True


def test_a_deny_of_requests_without_tls_forbids_nothing(s3: Any, bucket: str) -> None:
    deny(s3, bucket, {"Bool": {"aws:SecureTransport": "false"}}, "s3:*")
    assert may_put(s3, bucket)
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"1"


def test_a_policy_can_require_encryption(s3: Any, bucket: str) -> None:
    deny(s3, bucket, {"StringNotEquals": {"s3:x-amz-server-side-encryption": ["AES256", "aws:kms"]}})
    assert not may_put(s3, bucket)
    assert may_put(s3, bucket, ServerSideEncryption="AES256")
    assert may_put(s3, bucket, ServerSideEncryption="aws:kms")
    deny(s3, bucket, {"Null": {"s3:x-amz-server-side-encryption": "true"}})
    assert not may_put(s3, bucket)
    assert may_put(s3, bucket, ServerSideEncryption="AES256")


@pytest.mark.parametrize(
    ("condition", "is_allowed"),
    [
        ({"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}, False),
        ({"NotIpAddress": {"aws:SourceIp": ["127.0.0.1"]}}, True),
        ({"StringEquals": {"aws:PrincipalAccount": "123456789012"}}, False),
        ({"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012:*"}}, True),
        ({"StringNotEquals": {"aws:RequestedRegion": "us-east-1"}}, True),
        ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, True),
        ({"StringEquals": {"s3:RequestObjectTag/team": "red"}}, False),
        ({"StringEquals": {"s3:RequestObjectTag/team": "blue"}}, True),
        ({"DateGreaterThan": {"aws:CurrentTime": "2020-01-01T00:00:00Z"}}, False),
    ],
    ids=lambda value: "-".join(key for keys in value.values() for key in keys) if isinstance(value, dict) else "",
)
def test_keys_that_a_request_has(s3: Any, bucket: str, condition: dict[str, Any], is_allowed: bool) -> None:
    deny(s3, bucket, condition)
    assert may_put(s3, bucket, Tagging="team=red") is is_allowed


def put_by_address(url: str) -> int:
    with contextlib.suppress(HTTPError), urlopen(Request(url, data=b"1", method="PUT")) as answer:
        return int(answer.status)
    return 403


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_signed_address_has_the_same_keys(s3: Any, bucket: str, version: str) -> None:
    signer = boto3.client(
        "s3",
        "eu-west-1",
        endpoint_url=s3.meta.endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(signature_version=version),
    )
    address = signer.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "key"})
    deny(s3, bucket, {"StringNotEquals": {"s3:authType": "REST-QUERY-STRING"}})
    assert put_by_address(address) == 200
    deny(s3, bucket, {"StringEquals": {"aws:PrincipalAccount": "123456789012", "s3:authType": "REST-QUERY-STRING"}})
    assert put_by_address(address) == 403


def test_a_key_that_nobody_knows_is_logged_once(s3: Any, bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    deny(s3, bucket, {"StringNotEquals": {"aws:SourceVpce": "vpce-1a2b3c4d"}})
    with caplog.at_level(logging.WARNING, logger="emulator.moto_services.s3.policy"):
        assert may_put(s3, bucket)
        assert may_put(s3, bucket)
    said = [record.getMessage() for record in caplog.records if "aws:sourcevpce" in record.getMessage()]
    assert len(said) == 1
    assert bucket in said[0]


def test_an_operator_that_iam_does_not_have_is_refused(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError, match=r"MalformedPolicy.*Invalid Condition type : StringIs"):
        deny(s3, bucket, {"StringIs": {"s3:prefix": "a"}})


def test_a_denied_request_says_why(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"1")
    deny(s3, bucket, {}, "s3:*")
    for ask in (
        lambda: s3.put_object(Bucket=bucket, Key="key", Body=b"2"),
        lambda: s3.get_object(Bucket=bucket, Key="key"),
        lambda: s3.delete_object(Bucket=bucket, Key="key"),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key="key"),
    ):
        with pytest.raises(ClientError) as caught:
            ask()
        assert caught.value.response["Error"] == {"Code": "AccessDenied", "Message": "Access Denied"}
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_head_object_needs_the_permission_of_get_object(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="key", Body=b"1")
    deny(s3, bucket, {}, "s3:GetObject")
    with pytest.raises(ClientError, match="403"):
        s3.head_object(Bucket=bucket, Key="key")
    s3.put_object(Bucket=bucket, Key="key", Body=b"2")


def put_policy(s3: Any, bucket: str, *statements: dict[str, Any]) -> None:
    common = {"Principal": "*", "Resource": f"arn:aws:s3:::{bucket}"}
    policy = {"Version": "2012-10-17", "Statement": [{**common, **each} for each in statements]}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def list_denied(s3: Any, bucket: str, **members: Any) -> set[str]:
    """Return the operations that list a bucket and are denied."""
    asked = {
        "head_bucket": {},
        "list_objects": members,
        "list_objects_v2": members,
        "list_object_versions": members,
        "list_multipart_uploads": {},
    }
    denied = set()
    for operation, arguments in asked.items():
        try:
            getattr(s3, operation)(Bucket=bucket, **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] != ("403" if operation == "head_bucket" else "AccessDenied"):
                raise
            denied.add(operation)
    return denied


def test_a_denied_list_leaves_objects_and_the_policy_itself(s3: Any, bucket: str) -> None:
    assert may_put(s3, bucket)
    put_policy(s3, bucket, {"Effect": "Deny", "Action": "s3:ListBucket"})
    assert list_denied(s3, bucket) == {"head_bucket", "list_objects", "list_objects_v2"}
    put_policy(s3, bucket, {"Effect": "Deny", "Action": ["s3:ListBucketVersions", "s3:ListBucketMultipartUploads"]})
    assert list_denied(s3, bucket) == {"list_object_versions", "list_multipart_uploads"}
    put_policy(s3, bucket, {"Effect": "Deny", "Action": "s3:*"})
    assert len(list_denied(s3, bucket)) == 5
    assert s3.get_object(Bucket=bucket, Key="key")["Body"].read() == b"1"  # the policy names the bucket only
    assert s3.get_bucket_location(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 200
    s3.delete_bucket_policy(Bucket=bucket)
    assert list_denied(s3, bucket) == set()


@pytest.mark.parametrize(
    ("condition", "allowed", "denied"),
    [
        ({"StringNotLike": {"s3:prefix": "mine/*"}}, {"Prefix": "mine/a"}, {"Prefix": "others/"}),
        ({"StringNotEquals": {"s3:delimiter": "/"}}, {"Delimiter": "/"}, {"Delimiter": "-"}),
        ({"NumericGreaterThan": {"s3:max-keys": "10"}}, {"MaxKeys": 10}, {"MaxKeys": 11}),
        ({"Null": {"s3:prefix": "true"}}, {"Prefix": ""}, {}),
    ],
)
def test_lists_are_denied_by_what_they_ask(
    s3: Any, bucket: str, condition: dict[str, Any], allowed: dict[str, Any], denied: dict[str, Any]
) -> None:
    put_policy(s3, bucket, {"Effect": "Deny", "Action": "s3:ListBucket", "Condition": condition})
    assert list_denied(s3, bucket, **allowed) <= {"head_bucket"}
    assert list_denied(s3, bucket, **denied) >= {"list_objects", "list_objects_v2"}
