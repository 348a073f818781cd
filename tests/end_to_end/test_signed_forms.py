"""Tests of signed browser uploads, to an emulator that requires signatures."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import requests
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from tests.end_to_end.guarded import KEY, SECRET, Guarded

BUCKET = "forms"
RANGE = ["content-length-range", 2, 100_000]
# More than werkzeug would keep in memory, and bytes that are no text.
LARGE = bytes(range(256)) * 4000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    emulator = Guarded(tmp_path_factory.mktemp("forms") / "state", "process", "--require-signature")
    try:
        emulator.client("s3").create_bucket(Bucket=BUCKET)
        yield emulator
    finally:
        emulator.stop()


def sign(
    guarded: Guarded,
    name: str = "up/${filename}",
    version: str = "s3v4",
    key: str = KEY,
    secret: str = SECRET,
    **how: Any,
) -> tuple[str, dict[str, str]]:
    client = boto3.client(
        "s3",
        endpoint_url=guarded.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(signature_version=version),
    )
    signed = client.generate_presigned_post(BUCKET, name, **how)
    return signed["url"], signed["fields"]


def send(url: str, fields: dict[str, str], content: bytes = b"content", **how: Any) -> tuple[int, str]:
    answer = requests.post(url, data=fields, files={"file": ("a.bin", content)}, timeout=400, **how)
    return answer.status_code, answer.text


def list_keys(guarded: Guarded) -> list[str]:
    return [each["Key"] for each in guarded.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])]


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_that_boto3_signed_puts_its_object(guarded: Guarded, version: str) -> None:
    fields = {"acl": "private", "x-amz-meta-who": "me"}
    conditions = [{"acl": "private"}, ["starts-with", "$x-amz-meta-who", "m"], ["content-length-range", 1, 2_000_000]]
    url, signed = sign(guarded, f"{version}/${{filename}}", version, Fields=fields, Conditions=conditions)
    answered, text = send(url, {**signed, "x-ignore-this": "1"}, LARGE)
    assert answered == 204, text
    stored = guarded.client("s3").get_object(Bucket=BUCKET, Key=f"{version}/a.bin")
    assert stored["Body"].read() == LARGE
    assert stored["Metadata"] == {"who": "me"}
    guarded.client("s3").delete_object(Bucket=BUCKET, Key=f"{version}/a.bin")


def test_a_form_for_s3_asks_no_other_service(guarded: Guarded) -> None:
    """moto takes such a path for the name of a service where no header names one, and fields for its parameters."""
    asked = {"Action": "CreateUser", "UserName": "intruder", "Version": "2010-05-08"}
    conditions = [{name: value} for name, value in asked.items()]
    client = guarded.client("s3")
    signed = client.generate_presigned_post("iam_us-east-1", "key", Fields=asked, Conditions=conditions)
    answered, text = send(f"{guarded.endpoint_url}/iam_us-east-1/", signed["fields"])
    assert (answered, "NoSuchBucket" in text) == (404, True), text
    assert "intruder" not in [user["UserName"] for user in guarded.client("iam").list_users()["Users"]]


def test_an_address_for_s3_asks_no_other_service(guarded: Guarded) -> None:
    url = f"{guarded.endpoint_url}/iam_us-east-1/?Action=CreateUser&UserName=intruder&Version=2010-05-08"
    request = AWSRequest("GET", url)
    S3SigV4QueryAuth(Credentials(KEY, SECRET), "s3", "us-east-1").add_auth(request)
    answer = requests.get(request.prepare().url, timeout=400)
    assert (answer.status_code, "NoSuchBucket" in answer.text) == (404, True), answer.text
    client = guarded.client("s3")
    client.put_object(Bucket=BUCKET, Key="signed", Body=b"content")
    for method, key in (("get_object", "signed"), ("head_object", "signed"), ("list_objects_v2", None)):
        asked = {"Bucket": BUCKET} | ({"Key": key} if key else {})
        signed = client.generate_presigned_url(method, asked)
        verb = requests.head if method == "head_object" else requests.get
        assert verb(signed, timeout=400).status_code == 200, method
    put = client.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "put"})
    assert requests.put(put, data=b"more", timeout=400).status_code == 200
    assert client.get_object(Bucket=BUCKET, Key="put")["Body"].read() == b"more"
    for name in ("signed", "put"):
        client.delete_object(Bucket=BUCKET, Key=name)


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_a_form_that_was_not_signed_like_this_is_refused(guarded: Guarded, version: str) -> None:
    url, fields = sign(guarded, version=version, Conditions=[RANGE])
    policy = json.loads(base64.b64decode(fields["policy"]))
    policy["conditions"] = [*policy["conditions"], ["starts-with", "$key", ""]]
    other = base64.b64encode(json.dumps(policy).encode()).decode()
    keyless = {name: value for name, value in fields.items() if name != "key"}
    failed = "Invalid according to Policy: Policy Condition failed"
    refusals = {
        "another key": ({**fields, "key": "elsewhere"}, b"content", 403, "AccessDenied", failed),
        "a field more": ({**fields, "acl": "public-read"}, b"content", 403, "AccessDenied", "Extra input fields: acl"),
        "another policy": ({**fields, "policy": other}, b"content", 403, "SignatureDoesNotMatch", ""),
        "too large": (fields, b"c" * 100_001, 400, "EntityTooLarge", ""),
        "too small": (fields, b"c", 400, "EntityTooSmall", ""),
        "no policy": ({"key": "up/a"}, b"content", 403, "AccessDenied", ""),
        "no key": (keyless, b"content", 400, "InvalidArgument", "'key'"),
        "large fields": ({**fields, "x-ignore-a": "a" * 30_000}, b"content", 400, "MaxPostPreDataLengthExceeded", ""),
    }  # fmt: skip
    for what, (sent, content, status, code, words) in refusals.items():
        answered, text = send(url, sent, content)
        assert answered == status, (what, text)
        assert f"<Code>{code}</Code>" in text, (what, text)
        assert words in text, (what, text)
    for what, (key, secret, code) in {
        "a foreign key": ("AKIAOFNOBODY", SECRET, "InvalidAccessKeyId"),
        "a foreign secret": (KEY, "another", "SignatureDoesNotMatch"),
    }.items():
        answered, text = send(*sign(guarded, "k", version, key, secret))
        assert answered == 403, (what, text)
        assert f"<Code>{code}</Code>" in text, (what, text)
    answered, text = send(*sign(guarded, version=version, ExpiresIn=-1))
    assert (answered, "Invalid according to Policy: Policy expired." in text) == (403, True), text
    answered, text = send(url.replace(BUCKET, "another"), fields)
    assert (answered, "$bucket" in text) == (403, True), text
    assert list_keys(guarded) == []


def test_nothing_beside_the_form_is_read(guarded: Guarded) -> None:
    """An address' query, a header or a second field could tell moto something else than what was signed."""
    url, fields = sign(guarded)
    assert send(f"{url}?key=elsewhere", fields)[0] == 403
    assert send(url, fields, headers={"Content-Encoding": "gzip"})[0] == 403
    assert send(url, fields, headers={"X-Amz-Target": "SageMaker.ListTrainingJobs"})[0] >= 400
    twice = [*fields.items(), ("key", "elsewhere")]
    for data, files in (
        (twice, [("file", ("a.bin", b"1"))]),
        (list(fields.items()), [("file", ("a.bin", b"1")), ("file", ("b.bin", b"2"))]),
        (list(fields.items()), [("file", ("a.bin", b"1")), ("other", ("b.bin", b"2"))]),
        ([*fields.items(), ("file", "text")], [("file", ("a.bin", b"1"))]),
    ):
        answer = requests.post(url, data=data, files=files, timeout=400)
        assert (answer.status_code, "InvalidArgument" in answer.text) == (400, True), answer.text
    assert list_keys(guarded) == []


def test_a_form_may_what_its_signers_policies_allow(guarded: Guarded) -> None:
    iam = guarded.client("iam")
    iam.create_user(UserName="sender")
    made = iam.create_access_key(UserName="sender")["AccessKey"]
    allowed = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{BUCKET}/mine/*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy(UserName="sender", PolicyName="forms", PolicyDocument=document)
    pair = made["AccessKeyId"], made["SecretAccessKey"]
    assert send(*sign(guarded, "mine/${filename}", "s3v4", *pair)) == (204, "")
    answered, text = send(*sign(guarded, "theirs/${filename}", "s3v4", *pair))
    assert (answered, "not authorized to perform: s3:PutObject" in text) == (403, True), text
    assert list_keys(guarded) == ["mine/a.bin"]
    guarded.client("s3").delete_object(Bucket=BUCKET, Key="mine/a.bin")
