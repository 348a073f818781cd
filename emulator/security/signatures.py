"""SigV4 verification.

A signature is in the Authorization header or in the query of a presigned address. It covers the method, the path, the
query, some headers and the hash of the body. In a body in AWS's own chunks, each chunk has a signature, which also
covers the signature of the chunk before it.
"""

import hashlib
import hmac
import re
import time
from calendar import timegm
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from wsgiref.types import WSGIEnvironment

from emulator.exceptions import SignatureError
from emulator.security.hosts import find_bucket_in_host

CHUNK_SIGNATURES = "emulator.chunk_signatures"
"""Key in a WSGI environment: the ``ChunkSignatures`` of a body with signed chunks."""
BODY_HASH = "emulator.body_hash"
"""Key in a WSGI environment: the required SHA-256 of the body in hexadecimal digits, for the reader to check."""

ALGORITHM = "AWS4-HMAC-SHA256"
_SIGNED_CHUNKS = ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")
_UNSIGNED_BODIES = ("UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
_EMPTY_HASH = hashlib.sha256(b"").hexdigest()
_HASH = re.compile(r"[0-9a-f]{64}")
_PAIR = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]*)")
CREDENTIAL = re.compile(r"(?P<key>[^/\s]+)/(?P<day>\d{8})/(?P<region>[\w-]+)/(?P<service>[\w.-]+)/aws4_request")
_SAFE = "-_.~"
_SECONDS = re.compile(r"[0-9]{1,10}")
# S3 takes every other header of this kind as a part of the request, which has to be signed.
_MAY_BE_UNSIGNED = frozenset({"x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-amz-user-agent"})
_SKEW_SECONDS = 15 * 60
_MOST_PRESIGNED_SECONDS = 7 * 86_400
_PIECE_BYTES = 1024 * 1024


class Signature(NamedTuple):
    """The signature of a request, as the request states it.

    Attributes:
        access_key: the access key id.
        day: the day in the scope, as ``20260131``.
        region: the region in the scope.
        service: the service in the scope.
        headers: the signed headers, in lower case.
        text: the signature, in hexadecimal digits.
        moment: when it was signed, as ``20260131T120000Z``.
        expires: for how many seconds a presigned address is valid; None if the signature is in the header.
        token: the session token of temporary credentials.
    """

    access_key: str
    day: str
    region: str
    service: str
    headers: tuple[str, ...]
    text: str
    moment: str
    expires: int | None
    token: str | None

    @property
    def scope(self) -> str:
        """The credential's scope."""
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


def read_signature(environ: WSGIEnvironment) -> Signature | None:
    """Read a request's signature; return None if it has none.

    Raises:
        SignatureError: ``incomplete``, parts of the signature are missing.
    """
    header = environ.get("HTTP_AUTHORIZATION", "")
    if header.startswith(ALGORITHM):
        parts = dict(_PAIR.findall(header))
        moment = environ.get("HTTP_X_AMZ_DATE") or _read_http_date(environ.get("HTTP_DATE", ""))
        token, expires = environ.get("HTTP_X_AMZ_SECURITY_TOKEN"), None
        names = ("Credential", "SignedHeaders", "Signature")
    elif "X-Amz-Signature=" in environ.get("QUERY_STRING", ""):
        parts = dict(parse_qsl(environ["QUERY_STRING"]))
        names = ("X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Signature")
        moment, token = parts.get("X-Amz-Date", ""), parts.get("X-Amz-Security-Token")
        seconds = parts.get("X-Amz-Expires", "")
        if not _SECONDS.fullmatch(seconds) or not 0 < int(seconds) <= _MOST_PRESIGNED_SECONDS:
            raise SignatureError("incomplete", "X-Amz-Expires has to be from 1 to 604800 seconds.")
        expires = int(seconds)
    else:
        return None
    missing = [name for name in names if not parts.get(name)]
    found = CREDENTIAL.fullmatch(parts.get(names[0], ""))
    if missing or found is None or not moment:
        wrong = ", ".join(missing) or (names[0] if found is None else "X-Amz-Date")
        raise SignatureError("incomplete", f"The request's signature lacks a valid {wrong}.")
    headers = tuple(parts[names[1]].lower().split(";"))
    return Signature(
        found["key"], found["day"], found["region"], found["service"], headers, parts[names[2]], moment, expires, token
    )


def check_signature(environ: WSGIEnvironment, signature: Signature, secret: str) -> None:
    """Check a request's signature and time; put the expected body hash or chunk signatures into its environment.

    Raises:
        SignatureError: ``mismatch``, ``skewed`` or ``expired``; ``denied`` for a header of S3 that is not signed.
    """
    check_time(signature)
    if signature.service == "s3" and (unsigned := _list_amz_headers(environ) - set(signature.headers)):
        names = ", ".join(sorted(unsigned))
        raise SignatureError("denied", f"There were headers present in the request which were not signed: {names}")
    body_hash = _find_body_hash(environ, signature)
    # Not botocore's signer: it leaves out headers that other clients sign (User-Agent, Expect), and is slower.
    headers = _canonical_headers(environ, signature.headers)
    path = environ.get("REQUEST_URI") or quote(environ.get("PATH_INFO", ""))
    path = path.partition("?")[0] or "/"
    if signature.service != "s3":
        path = quote(_normalize(path), safe="/~")
    # As it came, which is how botocore signs it; other clients sign what they would have encoded it to.
    pairs = [tuple(part.partition("=")[::2]) for part in environ.get("QUERY_STRING", "").split("&") if part]
    pairs = [pair for pair in pairs if pair[0] != "X-Amz-Signature"]
    encoded = [tuple(quote(unquote(text), safe=_SAFE) for text in pair) for pair in pairs]
    key = derive_key(secret, signature.day, signature.region, signature.service)
    for each in (pairs, encoded):
        query = "&".join(f"{name}={value}" for name, value in sorted(each))
        signed = (environ["REQUEST_METHOD"], path, query, headers, ";".join(signature.headers), body_hash)
        digest = hashlib.sha256("\n".join(signed).encode("latin-1", "replace")).hexdigest()
        expected = _sign(key, f"{ALGORITHM}\n{signature.moment}\n{signature.scope}\n{digest}")
        if hmac.compare_digest(expected.encode(), signature.text.encode("latin-1", "replace")):
            break
    else:
        raise SignatureError("mismatch")
    if body_hash in _SIGNED_CHUNKS:
        environ[CHUNK_SIGNATURES] = ChunkSignatures(key, signature, has_trailer=body_hash.endswith("-TRAILER"))
    elif _HASH.fullmatch(body_hash):
        environ[BODY_HASH] = body_hash


def read_old_address(environ: WSGIEnvironment) -> Signature | None:
    """Read the signature of an S3 address presigned in version 2, boto3's default."""
    query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    if not {"AWSAccessKeyId", "Signature", "Expires"} <= query.keys():
        return None
    if not _SECONDS.fullmatch(query["Expires"]):
        raise SignatureError("incomplete", "Expires has to be a number of seconds.")
    token = query.get("x-amz-security-token")
    return Signature(query["AWSAccessKeyId"], "", "", "s3", (), query["Signature"], "", int(query["Expires"]), token)


def check_old_address(environ: WSGIEnvironment, signature: Signature, secret: str) -> None:
    """Check the signature of an address presigned in version 2.

    Raises:
        SignatureError: ``mismatch`` or ``expired``.
    """
    from botocore.auth import HmacV1QueryAuth
    from botocore.compat import HTTPHeaders
    from botocore.credentials import Credentials

    expires = signature.expires or 0
    if time.time() > expires:
        raise SignatureError("expired", "Request has expired")
    headers: Any = HTTPHeaders()
    for name in _list_amz_headers(environ):
        headers[name] = environ[f"HTTP_{name.upper().replace('-', '_')}"]
    kept = []
    for part in environ["QUERY_STRING"].split("&"):
        name, _, value = part.partition("=")
        if name.startswith("x-amz-") or name in ("content-md5", "content-type"):  # these stand for headers
            del headers[name]
            headers[name] = unquote(value)
        elif name not in ("AWSAccessKeyId", "Signature", "Expires"):
            kept.append(part)
    path = (environ.get("REQUEST_URI") or quote(environ.get("PATH_INFO", ""))).partition("?")[0]
    bucket = find_bucket_in_host(environ.get("HTTP_HOST", ""))
    signed_path = path if bucket is None else f"/{bucket}{path}"
    if signed_path.count("/") == 1 and signed_path != "/":  # a bucket, whose path clients sign with a trailing slash
        signed_path += "/"

    class Signer(HmacV1QueryAuth):
        """Signs with the time of the address instead of the current time."""

        def _get_date(self) -> str:
            return str(expires)

    expected: str = Signer(Credentials(signature.access_key, secret, signature.token)).get_signature(
        environ["REQUEST_METHOD"], urlsplit(f"{path}?{'&'.join(kept)}"), headers, auth_path=signed_path
    )
    if not hmac.compare_digest(expected.encode(), signature.text.encode("latin-1", "replace")):
        raise SignatureError("mismatch")


class ChunkSignatures:
    """The signatures of a body's chunks, in order.

    Attributes:
        has_trailer: whether signed headers follow the chunks.
    """

    def __init__(self, key: bytes, signature: Signature, *, has_trailer: bool) -> None:
        self._key = key
        self.has_trailer = has_trailer
        self._head = f"{signature.moment}\n{signature.scope}"
        self._before = signature.text

    def check_chunk(self, said: str, digest: str) -> None:
        """Check the next chunk; the last one is empty.

        Args:
            said: the signature sent with the chunk.
            digest: SHA-256 of its bytes.

        Raises:
            SignatureError: ``mismatch``.
        """
        self._check(said, f"{ALGORITHM}-PAYLOAD\n{self._head}\n{self._before}\n{_EMPTY_HASH}\n{digest}")

    def check_trailer(self, said: str, lines: bytes) -> None:
        """Check the headers after the last chunk, each with its line ending.

        Raises:
            SignatureError: ``mismatch``.
        """
        digest = hashlib.sha256(lines).hexdigest()
        self._check(said, f"{ALGORITHM}-TRAILER\n{self._head}\n{self._before}\n{digest}")

    def _check(self, said: str, text: str) -> None:
        expected = _sign(self._key, text)
        if not hmac.compare_digest(expected.encode(), said.encode("latin-1", "replace")):
            raise SignatureError("mismatch")
        self._before = expected


@lru_cache(maxsize=1024)
def derive_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Derive the signing key of a day, a region and a service."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _sign(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode("latin-1", "replace"), "sha256").hex()


def check_time(signature: Signature) -> None:
    """Check the signing time of a version 4 request.

    Raises:
        SignatureError: ``incomplete``, ``mismatch``, ``skewed`` or ``expired``.
    """
    try:
        signed = timegm(time.strptime(signature.moment, "%Y%m%dT%H%M%SZ"))
    except ValueError:
        raise SignatureError("incomplete", "X-Amz-Date has to look like 20260131T120000Z.") from None
    age = time.time() - signed
    if not signature.moment.startswith(signature.day):
        raise SignatureError(
            "mismatch", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date"
        )
    if signature.expires is not None and age > signature.expires:
        raise SignatureError("expired", "Request has expired")
    if age < -_SKEW_SECONDS or (signature.expires is None and age > _SKEW_SECONDS):
        raise SignatureError(
            "skewed", f"Signature expired: {signature.moment} is not within 15 minutes of this machine's time"
        )


def _find_body_hash(environ: WSGIEnvironment, signature: Signature) -> str:
    """Return the body hash as it was signed; hash the body if no header contains it."""
    said: str | None = environ.get("HTTP_X_AMZ_CONTENT_SHA256")
    if signature.service == "s3":
        if signature.expires is not None:
            return said or "UNSIGNED-PAYLOAD"
        if said is None or not (_HASH.fullmatch(said) or said in _UNSIGNED_BODIES or said in _SIGNED_CHUNKS):
            raise SignatureError(
                "incomplete", "Missing or invalid required header for this request: x-amz-content-sha256"
            )
        return said
    return hash_body(environ)


def hash_body(environ: WSGIEnvironment) -> str:
    """Return the SHA-256 of a request's body; the body can be read again."""
    length, stream = int(environ.get("CONTENT_LENGTH") or 0), environ["wsgi.input"]
    if not length:
        return _EMPTY_HASH
    digest, began = hashlib.sha256(), stream.tell()
    while length > 0 and (piece := stream.read(min(length, _PIECE_BYTES))):
        length -= len(piece)
        digest.update(piece)
    stream.seek(began)
    return digest.hexdigest()


def _list_amz_headers(environ: WSGIEnvironment) -> set[str]:
    """List the headers of S3 that a signature has to cover."""
    found = (name.removeprefix("HTTP_").replace("_", "-").lower() for name in environ if name.startswith("HTTP_X_AMZ_"))
    return {*found} - _MAY_BE_UNSIGNED


def _canonical_headers(environ: WSGIEnvironment, names: tuple[str, ...]) -> str:
    lines = []
    for name in names:
        key = name.upper().replace("-", "_")
        value = environ.get(key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}", "")
        lines.append(f"{name}:{' '.join(value.split())}\n")
    return "".join(lines)


def _normalize(path: str) -> str:
    """Return the path without empty and dot segments, as every service but S3 signs it."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return f"/{'/'.join(parts)}{'/' if parts and path.endswith('/') else ''}"


def _read_http_date(text: str) -> str:
    from email.utils import parsedate

    found = parsedate(text)
    return "" if found is None else time.strftime("%Y%m%dT%H%M%SZ", found)
