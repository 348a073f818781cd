"""Tests of signature verification: botocore's pass, tampered requests fail."""

import hashlib
import hmac
import io
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from emulator.exceptions import AwsError, SignatureError
from emulator.moto_services.s3.bodies import receive_body
from emulator.moto_services.s3.journal import S3Journal
from emulator.security.signatures import (
    BODY_HASH,
    CHUNK_SIGNATURES,
    check_old_address,
    check_signature,
    read_old_address,
    read_signature,
)

KEY, SECRET, REGION = "AKIDEXAMPLE", "a secret", "eu-west-1"
HOST = "http://127.0.0.1:4580"


def build_environ(method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> dict[str, Any]:
    """What the server makes of a request."""
    address = urlsplit(url)
    path = address.path or "/"
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": unquote(path, "latin-1"),
        "REQUEST_URI": f"{path}?{address.query}" if address.query else path,
        "QUERY_STRING": address.query,
        "CONTENT_LENGTH": str(len(body)) if body else "",
        "wsgi.input": io.BytesIO(body),
        "HTTP_HOST": address.netloc,
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return environ


def sign(
    signer: type[Any], service: str, method: str, url: str, body: bytes = b"", token: str | None = None, **headers: str
) -> dict[str, Any]:
    request = AWSRequest(method, url, {name.replace("_", "-"): value for name, value in headers.items()}, body)
    signer(Credentials(KEY, SECRET, token), service, REGION).add_auth(request)
    prepared = request.prepare()
    return build_environ(method, prepared.url, dict(request.headers.items()), body)


def check(environ: dict[str, Any], secret: str = SECRET) -> None:
    signature = read_signature(environ)
    assert signature is not None
    check_signature(environ, signature, secret)


REQUESTS = [
    (SigV4Auth, "sagemaker", "POST", f"{HOST}/", b"{}", {"X_Amz_Target": "SageMaker.ListTags"}),
    (SigV4Auth, "sts", "POST", f"{HOST}/", b"Action=GetCallerIdentity&Version=2011-06-15", {}),
    (SigV4Auth, "lambda", "POST", f"{HOST}/2015-03-31/functions/arn%3Aaws%3Alambda%3Ax/invocations", b"{}", {}),
    (SigV4Auth, "lambda", "GET", f"{HOST}/2015-03-31//functions/./a/../b/?Marker=a%2Bb&A=1&A=", b"", {}),
    (S3SigV4Auth, "s3", "PUT", f"{HOST}/bucket/a%20key//%C3%A4%2B%3F", b"content", {"x_amz_meta_who": " a  b "}),
    (S3SigV4Auth, "s3", "GET", f"{HOST}/bucket?list-type=2&prefix=a%2Fb%20c&delimiter=%2F&empty=", b"", {}),
    (SigV4QueryAuth, "sns", "GET", f"{HOST}/?Action=ListTopics", b"", {}),
    (S3SigV4QueryAuth, "s3", "GET", f"{HOST}/bucket/key%20of?versionId=1", b"", {}),
]  # fmt: skip


@pytest.mark.parametrize("token", [None, "a/token+of=many"])
@pytest.mark.parametrize(("signer", "service", "method", "url", "body", "headers"), REQUESTS)
def test_what_botocore_signs_is_right_and_nothing_else(
    signer: type[Any], service: str, method: str, url: str, body: bytes, headers: dict[str, str], token: str | None
) -> None:
    environ = sign(signer, service, method, url, body, token, **headers)
    signature = read_signature(environ)
    assert signature is not None
    assert (signature.access_key, signature.service, signature.region) == (KEY, service, REGION)
    assert signature.token == token
    check(environ)
    assert environ["wsgi.input"].read() == body, "the body can be read again"
    environ["wsgi.input"].seek(0)
    with pytest.raises(SignatureError, match="mismatch"):
        check(environ, "another secret")
    changes = {
        "REQUEST_METHOD": "DELETE",
        "REQUEST_URI": f"/other{environ['REQUEST_URI']}",
        "QUERY_STRING": f"{environ['QUERY_STRING']}&more=1",
        "HTTP_HOST": "elsewhere",
    }
    if body and service != "s3":
        changes["wsgi.input"] = io.BytesIO(b"x" * len(body))  # type: ignore[assignment]
    for name, value in changes.items():
        with pytest.raises(SignatureError, match="mismatch"):
            check({**environ, name: value})


def test_a_body_of_s3_is_held_to_the_hash_that_was_signed(tmp_path: Path) -> None:
    environ = sign(S3SigV4Auth, "s3", "PUT", f"{HOST}/b/k", b"content")
    check(environ)
    assert environ[BODY_HASH] == hashlib.sha256(b"content").hexdigest()
    journal = S3Journal(tmp_path)
    try:
        with pytest.raises(AwsError, match="content-sha256"):
            receive_body({**environ, "wsgi.input": io.BytesIO(b"CONTENT")}, journal)
        receive_body(environ, journal).close()
    finally:
        journal.close()


@pytest.mark.parametrize(
    ("moved", "kind"),
    [(timedelta(minutes=-16), "skewed"), (timedelta(minutes=16), "skewed"), (timedelta(minutes=14), None)],
)
def test_a_signature_of_another_time_is_refused(
    moved: timedelta, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = sign(SigV4Auth, "sts", "POST", f"{HOST}/", b"Action=GetCallerIdentity")
    now = datetime.now(UTC).timestamp()
    monkeypatch.setattr("emulator.security.signatures.time.time", lambda: now + moved.total_seconds())
    if kind is None:
        check(environ)
        return
    with pytest.raises(SignatureError) as refused:
        check(environ)
    assert refused.value.kind == kind


def test_an_address_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = sign(S3SigV4QueryAuth, "s3", "GET", f"{HOST}/bucket/key")
    now = datetime.now(UTC).timestamp()
    monkeypatch.setattr("emulator.security.signatures.time.time", lambda: now + 3599)
    check(environ)
    monkeypatch.setattr("emulator.security.signatures.time.time", lambda: now + 3605)
    with pytest.raises(SignatureError) as refused:
        check(environ)
    assert refused.value.kind == "expired"


@pytest.mark.parametrize(
    ("name", "value"), [("user-agent", "aws-sdk-java/1.12"), ("expect", "100-continue"), ("x-amz-meta-who", "Zoë")]
)
def test_headers_that_only_other_clients_sign_count(name: str, value: str) -> None:
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    headers = {"host": "127.0.0.1:4580", "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": moment, name: value}
    signed = sorted(headers)
    lines = "".join(f"{each}:{headers[each]}\n" for each in signed)
    canonical = f"PUT\n/bucket/key\n\n{lines}\n{';'.join(signed)}\nUNSIGNED-PAYLOAD"
    scope = (moment[:8], REGION, "s3", "aws4_request")
    key = f"AWS4{SECRET}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{moment}\n{'/'.join(scope)}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={KEY}/{'/'.join(scope)}, SignedHeaders={';'.join(signed)}, "
        f"Signature={hmac.digest(key, text.encode(), 'sha256').hex()}"
    )
    received = {each: headers[each].encode().decode("latin-1") for each in signed}
    environ = build_environ("PUT", f"{HOST}/bucket/key", {**received, "authorization": authorization})
    check(environ)
    with pytest.raises(SignatureError, match="mismatch"):
        check({**environ, f"HTTP_{name.upper().replace('-', '_')}": "another"})


@pytest.mark.parametrize("addressing", ["path", "virtual"])
@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_an_address_that_boto3_presigns_is_right(version: str, addressing: str) -> None:
    """In the old version too, which boto3 takes unless it is told otherwise."""
    make: Any = boto3.client
    configure: Any = Config
    client = make(
        "s3",
        endpoint_url="http://s3.localhost:4580",
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        aws_session_token="token",
        config=configure(signature_version=version, s3={"addressing_style": addressing}),
    )
    url = client.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "a key", "VersionId": "1"})
    environ = build_environ("GET", url, {})
    signature = read_signature(environ) or read_old_address(environ)
    assert signature is not None
    checks = check_signature if version == "s3v4" else check_old_address
    checks(environ, signature, SECRET)
    assert signature.token == "token"
    with pytest.raises(SignatureError, match="mismatch"):
        checks({**environ, "REQUEST_URI": environ["REQUEST_URI"].replace("key", "kex")}, signature, SECRET)


@pytest.mark.parametrize(
    "header",
    [
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=, SignedHeaders=host, Signature=0",
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/aws4_request, SignedHeaders=host, Signature=0",
        "AWS4-HMAC-SHA256 Credential=a/20260101/r/s/aws4_request, Signature=0",
        "AWS4-HMAC-SHA256 Credential=a/20260101/r/s/aws4_request, SignedHeaders=host, Signature=é",
    ],
)
def test_what_is_not_a_signature_is_refused(header: str) -> None:
    environ = build_environ("POST", f"{HOST}/", {"Authorization": header, "X-Amz-Date": "20260101T000000Z"})
    with pytest.raises(SignatureError) as refused:
        check(environ)
    assert refused.value.kind in {"incomplete", "skewed", "mismatch"}
    assert read_signature(build_environ("GET", f"{HOST}/", {})) is None


def build_chunks(pieces: list[bytes], *, trailer: bytes | None) -> tuple[dict[str, Any], bytes]:
    """Sign a put in chunks as AWS describes them, by botocore's own signer where it has one."""
    name = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("" if trailer is None else "-TRAILER")
    size = str(sum(map(len, pieces)))
    headers = {"X-Amz-Content-SHA256": name, "X-Amz-Decoded-Content-Length": size, "Content-Encoding": "aws-chunked"}
    if trailer is not None:
        headers["X-Amz-Trailer"] = "x-amz-checksum-sha256"
    request = AWSRequest("PUT", f"{HOST}/bucket/key", headers, b"")

    class Signer(S3SigV4Auth):
        def payload(self, request: Any) -> str:
            return name

        def _should_sha256_sign_payload(self, request: Any) -> bool:
            return True

    signer: Any = Signer(Credentials(KEY, SECRET), "s3", REGION)
    signer.add_auth(request)
    moment, scope = request.context["timestamp"], signer.credential_scope(request)
    before = request.headers["Authorization"].rpartition("Signature=")[2]
    empty, body = hashlib.sha256(b"").hexdigest(), b""

    def seal(kind: str, *lines: str) -> str:
        text = "\n".join((f"AWS4-HMAC-SHA256-{kind}", moment, scope, before, *lines))
        sealed: str = signer.signature(text, request)
        return sealed

    for piece in [*pieces, b""]:
        before = seal("PAYLOAD", empty, hashlib.sha256(piece).hexdigest())
        body += f"{len(piece):x};chunk-signature={before}\r\n".encode() + piece + (b"\r\n" if piece else b"")
    if trailer is not None:
        sealed = seal("TRAILER", hashlib.sha256(trailer + b"\n").hexdigest())
        body += trailer + b"\r\nx-amz-trailer-signature:" + sealed.encode() + b"\r\n"
    return build_environ("PUT", f"{HOST}/bucket/key", dict(request.headers.items()), body + b"\r\n"), body


def test_chunks_are_signed_one_by_one(tmp_path: Path) -> None:
    import base64

    pieces = [b"a" * 70_000, b"b" * 65_536, b"c"]
    digest = base64.b64encode(hashlib.sha256(b"".join(pieces)).digest())
    journal = S3Journal(tmp_path)
    try:
        for trailer in (None, b"x-amz-checksum-sha256:" + digest):
            environ, body = build_chunks(pieces, trailer=trailer)
            check(environ)
            assert CHUNK_SIGNATURES in environ
            transfer = receive_body(environ, journal)
            assert transfer.received is not None
            assert transfer.received.read() == b"".join(pieces)
            transfer.close()
            spoilt = [
                body.replace(b"b" * 10, b"B" * 10, 1),
                body.replace(b"\r\n1;chunk-signature=", b"\r\n1;chunk-signature=0", 1),
            ]
            if trailer is not None:
                spoilt.append(body.replace(b"trailer-signature:", b"trailer-signature:0", 1))
                spoilt.append(body.partition(b"x-amz-trailer-signature")[0])
            for each in spoilt:
                environ, _ = build_chunks(pieces, trailer=trailer)
                check(environ)
                environ |= {"wsgi.input": io.BytesIO(each + b"\r\n"), "CONTENT_LENGTH": str(len(each) + 2)}
                with pytest.raises(AwsError, match="signature of a chunk") as refused:
                    receive_body(environ, journal)
                assert (refused.value.code, refused.value.status) == ("SignatureDoesNotMatch", 403)
    finally:
        journal.close()


def test_a_date_header_counts_where_there_is_no_x_amz_date() -> None:
    environ = sign(SigV4Auth, "sts", "POST", f"{HOST}/", b"Action=GetCallerIdentity", Date="of now")
    assert "HTTP_X_AMZ_DATE" not in environ
    check(environ)
    with pytest.raises(SignatureError, match="lacks a valid X-Amz-Date"):
        read_signature({**environ, "HTTP_DATE": "yesterday"})


@pytest.mark.parametrize(("seconds", "is_valid"), [("0", False), ("1", True), ("604800", True), ("604801", False)])
def test_a_presigned_address_lasts_a_second_to_a_week(seconds: str, is_valid: bool) -> None:
    credential = f"{KEY}/20260101/{REGION}/s3/aws4_request"
    query = f"X-Amz-Credential={credential}&X-Amz-SignedHeaders=host&X-Amz-Date=20260101T000000Z&X-Amz-Signature=a"
    environ = build_environ("GET", f"{HOST}/bucket/key?{query}&X-Amz-Expires={seconds}", {})
    if is_valid:
        signature = read_signature(environ)
        assert signature is not None
        assert signature.expires == int(seconds)
    else:
        with pytest.raises(SignatureError, match=r"X-Amz-Expires has to be from 1 to 604800 seconds\."):
            read_signature(environ)


def test_keys_are_derived_as_botocore_does() -> None:
    from emulator.security.signatures import derive_key

    signer: Any = SigV4Auth(Credentials(KEY, SECRET), "iam", REGION)
    request = AWSRequest("GET", HOST, {}, b"")
    request.context["timestamp"] = "20260131T120000Z"
    expected = signer.signature("text", request)
    found = hmac.digest(derive_key(SECRET, "20260131", REGION, "iam"), b"text", "sha256").hex()
    assert found == expected
