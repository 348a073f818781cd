"""Signed browser uploads to S3: POST policies and their signatures.

Only the text of the policy is signed. Every field therefore has to be covered by a condition of the policy, and a
request with anything else that moto would read is refused.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple, cast
from wsgiref.types import WSGIEnvironment

from werkzeug.datastructures import FileStorage

from emulator.exceptions import AwsError, SignatureError
from emulator.security.signatures import ALGORITHM, CREDENTIAL, Signature, check_time, derive_key

_MOST_FIELDS_BYTES = 20 * 1024  # S3's limit for all fields together
# What is held of a body: twice what werkzeug reads at a time, for each part at most.
_MOST_HELD_BYTES = 128 * 1024
_MOST_PARTS = 100
_WEEK_SECONDS = 7 * 86_400
_BUCKET_PATH = re.compile(r"/([^/]+)/?")
_SIZE = re.compile(r"[0-9]{1,18}")
# Fields that need no condition: the policy's own signature, and ignored fields.
_UNCOVERED = frozenset({"policy", "file", "x-amz-signature", "awsaccesskeyid", "signature"})
_IGNORED = "x-ignore-"


class SignedForm(NamedTuple):
    """A form that uploads an object.

    Attributes:
        signature: the form's signature; ``day`` is empty for version 2.
        fields: by lower-case name, with the file name inserted into the key and the bucket taken from the path.
        file_bytes: the size of the file.
    """

    signature: Signature
    fields: Mapping[str, str]
    file_bytes: int

    @property
    def resource(self) -> str:
        """The ARN of the uploaded object."""
        return f"arn:aws:s3:::{self.fields['bucket']}/{self.fields['key']}"


class _Counter:
    """A file-like object that counts the bytes written and discards them."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> int:
        """Count."""
        self.size += len(data)
        return len(data)

    def seek(self, _offset: int, _whence: int = 0) -> int:
        """Do as if."""
        return 0

    def close(self) -> None:
        """Do nothing."""


def read_signed_form(environ: WSGIEnvironment, path: str) -> SignedForm | None:
    """Read the form of a request; return None if it has no form with a policy. The body can be read again.

    Args:
        environ: the request.
        path: the path with the bucket, whether or not the bucket is in the host name.

    Raises:
        SignatureError: ``incomplete``, parts of the signature are missing.
        AwsError: S3 would not accept the form.
    """
    bucket = _BUCKET_PATH.fullmatch(path)
    is_form = environ.get("CONTENT_TYPE", "").lower().startswith("multipart/form-data")
    if environ["REQUEST_METHOD"] != "POST" or bucket is None or not is_form:
        return None
    # Nothing else that tells moto what is requested, or how to read the body, is signed.
    if environ.get("QUERY_STRING") or {"HTTP_X_AMZ_TARGET", "HTTP_CONTENT_ENCODING", "HTTP_AUTHORIZATION"} & set(
        environ
    ):
        return None
    fields, filename, size = _parse(environ)
    if "policy" not in fields:
        return None
    if not fields.get("key"):
        raise AwsError(
            "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.",
            code="InvalidArgument",
        )
    # As moto does when it stores the object.
    fields["key"] = fields["key"].replace("${filename}", os.path.basename(filename))  # noqa: PTH119
    fields["bucket"] = bucket[1]
    return SignedForm(_read_signature(fields), fields, size)


def _parse(environ: WSGIEnvironment) -> tuple[dict[str, str], str, int]:
    """Return the fields of a form, and its file's name and size."""
    from werkzeug.exceptions import HTTPException
    from werkzeug.formparser import FormDataParser

    stream, counters = environ["wsgi.input"], []

    def count(*_: Any, **_named: Any) -> IO[bytes]:
        counters.append(_Counter())
        return cast("IO[bytes]", counters[-1])

    parser = FormDataParser(count, max_form_memory_size=_MOST_HELD_BYTES, max_form_parts=_MOST_PARTS, silent=False)
    began = stream.tell()
    try:
        _, form, files = parser.parse_from_environ(environ)
    except HTTPException as error:
        if error.code != 413:
            raise _malformed() from None
        raise _too_large() from None
    except ValueError:
        raise _malformed() from None
    finally:
        stream.seek(began)
    if sum(len(name) + len(value) for name, value in form.items(multi=True)) > _MOST_FIELDS_BYTES:
        raise _too_large()
    sent: list[FileStorage] = [each for name in files for each in files.getlist(name)]
    if len(sent) != 1 or list(files) != ["file"]:
        raise AwsError("POST requires exactly one file upload per request.", code="InvalidArgument")
    fields: dict[str, str] = {}
    for name, value in form.items(multi=True):
        if name.lower() in fields or name.lower() == "file" or (name.lower() == "key" and name != "key"):
            raise AwsError(
                f"The form has the field {name} more than once, or not as S3 writes it.", code="InvalidArgument"
            )
        fields[name.lower()] = value
    return fields, sent[0].filename or "", counters[0].size


def _read_signature(fields: Mapping[str, str]) -> Signature:
    token = fields.get("x-amz-security-token")
    if "awsaccesskeyid" in fields:
        return Signature(fields["awsaccesskeyid"], "", "", "s3", (), fields.get("signature", ""), "", None, token)
    found = CREDENTIAL.fullmatch(fields.get("x-amz-credential", ""))
    if found is None or found["service"] != "s3" or fields.get("x-amz-algorithm") != ALGORITHM:
        raise SignatureError("incomplete", "The form lacks a valid x-amz-credential or x-amz-algorithm.")
    text, moment = fields.get("x-amz-signature", ""), fields.get("x-amz-date", "")
    # The key of a day is valid for a week; the policy's own expiry is earlier, if anything.
    return Signature(found["key"], found["day"], found["region"], "s3", (), text, moment, _WEEK_SECONDS, token)


def check_form_signature(form: SignedForm, secret: str) -> None:
    """Check the signature of a form's policy.

    Raises:
        SignatureError: ``mismatch``, ``skewed`` or ``expired``.
    """
    signature, policy = form.signature, form.fields["policy"].encode()
    if signature.day:
        check_time(signature)
        key = derive_key(secret, signature.day, signature.region, signature.service)
        expected = hmac.digest(key, policy, "sha256").hex()
    else:
        expected = base64.b64encode(hmac.digest(secret.encode(), policy, hashlib.sha1)).decode()
    if not hmac.compare_digest(expected.encode(), signature.text.encode()):
        raise SignatureError("mismatch")


def check_form_policy(form: SignedForm, now: datetime) -> None:
    """Check a form against its policy, whose signature is already checked.

    Raises:
        AwsError: the policy is invalid, has expired, or does not allow the form.
    """
    policy = _load_policy(form.fields["policy"])
    try:
        expires = datetime.fromisoformat(str(policy["expiration"]).replace("Z", "+00:00"))
    except (KeyError, ValueError):
        raise _invalid("Invalid 'expiration' value.") from None
    if now >= (expires if expires.tzinfo else expires.replace(tzinfo=UTC)):
        raise _denied("Policy expired.")
    conditions = policy.get("conditions")
    if not isinstance(conditions, list):
        raise _invalid("Invalid 'conditions' value: must be a List.")
    covered = set(_UNCOVERED)
    for condition in conditions:
        for kind, name, value in _read_condition(condition):
            if kind == "content-length-range":
                _check_size(form.file_bytes, name, value)
                continue
            covered.add(name)
            if not _holds(kind, name, str(value), form.fields.get(name)):
                raise _denied(f"Policy Condition failed: {json.dumps([kind, f'${name}', value])}")
    extra = sorted(name for name in form.fields if name not in covered and not name.startswith(_IGNORED))
    if extra:
        raise _denied(f"Extra input fields: {', '.join(extra)}")


def _load_policy(text: str) -> dict[str, Any]:
    try:
        policy = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        policy = None
    if not isinstance(policy, dict):
        raise _invalid("Invalid JSON.")
    return policy


def _read_condition(condition: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield an operator, a field's name and the expected value; for a size range, its two limits."""
    if isinstance(condition, dict) and condition:
        for name, value in condition.items():
            if not isinstance(value, str):
                raise _invalid("Invalid Simple-Condition: value must be a string.")
            yield "eq", name.lower(), value
        return
    if not (isinstance(condition, list) and len(condition) == 3):
        raise _invalid("Invalid Condition: it has to be an object or a list of three.")
    kind, name, value = str(condition[0]).lower(), condition[1], condition[2]
    if kind == "content-length-range":
        if not all(_SIZE.fullmatch(str(end)) for end in (name, value)):
            raise _invalid("Invalid content-length-range: its ends have to be numbers.")
        yield kind, int(name), int(value)
    elif kind in ("eq", "starts-with") and str(name).startswith("$") and isinstance(value, str):
        yield kind, str(name)[1:].lower(), value
    else:
        raise _invalid(f"Invalid Condition: {json.dumps(condition)}")


def _holds(kind: str, name: str, value: str, said: str | None) -> bool:
    if said is None:
        return False
    if kind == "eq":
        return said == value
    kinds = said.split(",") if name == "content-type" else [said]  # several types, separated by commas
    return all(each.strip().startswith(value) if name == "content-type" else each.startswith(value) for each in kinds)


def _check_size(size: int, least: int, most: int) -> None:
    if size > most:
        raise AwsError("Your proposed upload exceeds the maximum allowed size", code="EntityTooLarge")
    if size < least:
        raise AwsError("Your proposed upload is smaller than the minimum allowed size", code="EntityTooSmall")


def _too_large() -> AwsError:
    text = "Your POST request fields preceding the upload file were too large."
    return AwsError(text, code="MaxPostPreDataLengthExceeded")


def _malformed() -> AwsError:
    text = "The body of your POST request is not well-formed multipart/form-data."
    return AwsError(text, code="MalformedPOSTRequest")


def _invalid(why: str) -> AwsError:
    return AwsError(f"Invalid Policy: {why}", code="InvalidPolicyDocument")


def _denied(why: str) -> AwsError:
    return AwsError(f"Invalid according to Policy: {why}", code="AccessDenied", status=403)
