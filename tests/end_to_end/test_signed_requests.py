"""Tests of requests that are judged as one thing and run as another."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from tests.end_to_end.guarded import Guarded

BUCKET = "signed-requests"
FORM = "application/x-www-form-urlencoded"
ADMIN = "arn:aws:iam::123456789012:role/Admin"
ASSUME = f"Action=AssumeRole&RoleArn={ADMIN}&RoleSessionName=x&Version=2011-06-15"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    emulator = Guarded(tmp_path_factory.mktemp("signed") / "state", "process", "--require-signature")
    try:
        s3 = emulator.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="secret", Body=b"secret")
        yield emulator
    finally:
        emulator.stop()


@pytest.fixture(scope="module")
def user(guarded: Guarded) -> Credentials:
    """A user who may do everything in S3, and nothing else."""
    iam = guarded.client("iam")
    iam.create_user(UserName="user")
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="user", PolicyName="s3", PolicyDocument=document)
    key = iam.create_access_key(UserName="user")["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


def send(
    guarded: Guarded,
    user: Credentials,
    service: str,
    path: str,
    body: str,
    headers: dict[str, str],
    method: str = "POST",
) -> requests.Response:
    address = f"{guarded.endpoint_url}{path}"
    request = AWSRequest("POST", address, headers, body)
    SigV4Auth(user, service, "us-east-1").add_auth(request)
    return requests.post(address, data=body, headers=dict(request.headers.items()), timeout=400)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/", {"X-Amz-Target": "x.GetCallerIdentity"}),
        ("/", {"Action": "GetCallerIdentity"}),
        ("/?Action=GetCallerIdentity", {}),
        ("/service/sts/operation/GetCallerIdentity", {}),
        ("/?Action=GetCallerIdentity", {"Content-Type": "Application/X-WWW-Form-Urlencoded"}),
        ("/?Action=GetCallerIdentity", {"Content-Type": "multipart/form-data; boundary=x"}),
        ("/?Action=GetCallerIdentity", {"Content-Encoding": "unknown"}),
    ],
)
def test_an_operation_is_run_as_the_one_that_is_judged(
    guarded: Guarded, user: Credentials, path: str, headers: dict[str, str]
) -> None:
    answer = send(guarded, user, "sts", path, ASSUME, {"Content-Type": FORM, **headers})
    assert answer.status_code == 403, answer.text
    assert "AccessDenied" in answer.text


def test_who_may_do_nothing_may_still_ask_who_they_are(guarded: Guarded, user: Credentials) -> None:
    answer = send(guarded, user, "sts", "/", "Action=GetCallerIdentity&Version=2011-06-15", {"Content-Type": FORM})
    assert answer.status_code == 200, answer.text
    assert ":user/user" in answer.text


@pytest.mark.parametrize(
    ("path", "headers", "service"),
    [
        ("/", {"X-Amz-Target": "SageMaker.ListTrainingJobs"}, "sagemaker"),
        ("/2015-03-31/functions/nobody/invocations?uploads", {}, "lambda"),
    ],
)
def test_a_request_needs_a_signature_for_its_service(
    guarded: Guarded, user: Credentials, path: str, headers: dict[str, str], service: str
) -> None:
    answer = send(guarded, user, "s3", path, "{}", {**headers, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"})
    assert answer.status_code == 403, answer.text
    assert f"Credential should be scoped to correct service: '{service}'" in answer.text


def test_account_and_service_are_those_of_the_signature(guarded: Guarded, user: Credentials) -> None:
    request = AWSRequest("GET", f"{guarded.endpoint_url}/", {"X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"})
    SigV4Auth(user, "s3", "us-east-1").add_auth(request)
    headers = dict(request.headers.items())
    algorithm, _, parts = headers["Authorization"].partition(" ")
    other = "Credential=222222222222/20260101/us-east-1/iam/aws4_request"
    headers["Authorization"] = f"{algorithm} {other}, {parts}"
    answer = requests.get(f"{guarded.endpoint_url}/", headers=headers, timeout=400)
    assert BUCKET in answer.text, "buckets of the signer's account"
    presigned = guarded.client("s3").generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "secret"})
    answer = requests.get(presigned, headers={"Authorization": f"x {other}"}, timeout=400)
    assert (answer.status_code, answer.content) == (200, b"secret")


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_an_address_allows_no_headers_that_are_not_signed(guarded: Guarded, version: str) -> None:
    options: dict[str, Any] = {"config": Config(signature_version=version)}
    s3: Any = boto3.client(
        "s3",
        endpoint_url=guarded.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="AKIAOFTHETESTS",
        aws_secret_access_key="the secret of the tests",
        **options,
    )
    address = s3.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": version})
    copied = requests.put(address, headers={"x-amz-copy-source": f"/{BUCKET}/secret"}, timeout=400)
    assert copied.status_code == 403, copied.text
    assert requests.put(address, data=b"content", timeout=400).status_code == 200
    assert guarded.client("s3").get_object(Bucket=BUCKET, Key=version)["Body"].read() == b"content"
    endless = address.replace("Expires=", f"Expires={'9' * 5000}")
    assert requests.put(endless, timeout=400).status_code == 400
