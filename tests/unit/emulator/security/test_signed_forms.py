"""Forms and policies that S3 refuses whatever their signature is."""

import base64
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.exceptions import AwsError, SignatureError
from emulator.security.signatures import Signature
from emulator.security.signed_forms import SignedForm, check_form_policy, read_signed_form

NOW = datetime(2026, 1, 31, tzinfo=UTC)
LATER = "2026-02-01T00:00:00Z"
SIGNED = {
    "policy": "e30=",
    "key": "a/${filename}",
    "x-amz-credential": "KEY/20260131/us-east-1/s3/aws4_request",
    "x-amz-algorithm": "AWS4-HMAC-SHA256",
    "x-amz-date": "20260131T000000Z",
    "x-amz-signature": "0" * 64,
}


def build_environ(body: bytes, content_type: str = "multipart/form-data; boundary=x") -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(body)),
        "QUERY_STRING": "",
        "wsgi.input": io.BytesIO(body),
    }


def build_body(fields: dict[str, str]) -> bytes:
    parts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    file = '--x\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\nrows\r\n--x--\r\n'
    return ("".join(parts) + file).encode()


def check(policy: Any, **fields: str) -> None:
    text = policy if isinstance(policy, str) else base64.b64encode(json.dumps(policy).encode()).decode()
    signature = Signature("KEY", "20260131", "us-east-1", "s3", (), "", "", None, None)
    check_form_policy(SignedForm(signature, {"bucket": "b", "key": "k", "policy": text, **fields}, 4), NOW)


def test_a_form_is_read_and_its_body_can_be_read_again() -> None:
    environ = build_environ(build_body(SIGNED))
    form = read_signed_form(environ, "/b")
    assert form is not None
    assert (form.fields["key"], form.fields["bucket"], form.file_bytes) == ("a/t.csv", "b", 4)
    assert environ["wsgi.input"].read() == build_body(SIGNED)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"--x\r\nno part\r\n", "MalformedPOSTRequest"),
        (b"", "MalformedPOSTRequest"),
        (build_body({**SIGNED, "x-amz-meta-long": "x" * 30_000}), "MaxPostPreDataLengthExceeded"),
        (build_body({**SIGNED, "x-amz-meta-long": "x" * 2_000_000}), "MaxPostPreDataLengthExceeded"),
        (build_body({**SIGNED, "key": ""}), "InvalidArgument"),
        (build_body({**SIGNED, "Policy": "e30="}), "InvalidArgument"),
    ],
)
def test_a_form_that_is_none_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(AwsError) as refused:
        read_signed_form(build_environ(body), "/b")
    assert refused.value.code == code


@pytest.mark.parametrize("field", ["x-amz-credential", "x-amz-algorithm"])
def test_a_form_without_its_credential_is_incomplete(field: str) -> None:
    with pytest.raises(SignatureError, match="lacks a valid x-amz-credential or x-amz-algorithm"):
        read_signed_form(build_environ(build_body({**SIGNED, field: "?"})), "/b")


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("no base64!", "Invalid JSON."),
        (["a list"], "Invalid JSON."),
        ({"conditions": []}, "Invalid 'expiration' value."),
        ({"expiration": "soon", "conditions": []}, "Invalid 'expiration' value."),
        ({"expiration": LATER}, "Invalid 'conditions' value: must be a List."),
        ({"expiration": LATER, "conditions": [{"key": 1}]}, "Invalid Simple-Condition: value must be a string."),
        (
            {"expiration": LATER, "conditions": [["eq", "$key"]]},
            "Invalid Condition: it has to be an object or a list of three.",
        ),
        (
            {"expiration": LATER, "conditions": [["content-length-range", "few", "many"]]},
            "Invalid content-length-range: its ends have to be numbers.",
        ),
        (
            {"expiration": LATER, "conditions": [["ends-with", "$key", "k"]]},
            'Invalid Condition: ["ends-with", "$key", "k"]',
        ),
        ({"expiration": LATER, "conditions": [["eq", "key", "k"]]}, 'Invalid Condition: ["eq", "key", "k"]'),
    ],
)
def test_a_policy_that_cannot_be_read_is_invalid(policy: Any, why: str) -> None:
    with pytest.raises(AwsError) as refused:
        check(policy)
    assert (refused.value.code, refused.value.message) == ("InvalidPolicyDocument", f"Invalid Policy: {why}")


def test_a_policy_holds_for_what_it_names() -> None:
    conditions = [{"bucket": "b"}, ["eq", "$key", "k"], ["starts-with", "$Content-Type", "image/"]]
    policy = {"expiration": "2026-02-01T00:00:00", "conditions": conditions}
    check(policy, **{"content-type": "image/png, image/gif"})
    for content_type in ("image/png, text/html", None):
        given = {} if content_type is None else {"content-type": content_type}
        with pytest.raises(AwsError, match=r'Policy Condition failed: \["starts-with", "\$content-type", "image/"\]'):
            check(policy, **given)
    with pytest.raises(AwsError, match="Extra input fields: acl, tagging"):
        check(policy, **{"content-type": "image/png", "tagging": "t", "acl": "private"})
    with pytest.raises(AwsError, match="Policy expired"):
        check({**policy, "expiration": "2026-01-31T00:00:00"})
