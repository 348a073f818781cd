"""Stream bodies; moto sees placeholders.

The body of a put is written to a file of the journal before S3's lock is taken. The contents for a get are opened under
the lock and read after it is released.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.types import InputStream, WSGIEnvironment

from werkzeug.wrappers import Response
from werkzeug.wsgi import wrap_file

from emulator.exceptions import AwsError, SignatureError
from emulator.moto_services.s3.checksums import encode_checksum, start_checksum
from emulator.moto_services.s3.content import ContentReader, StoredContent
from emulator.moto_services.s3.index_rows import StoredKey
from emulator.moto_services.s3.journal import S3Journal
from emulator.security.signatures import BODY_HASH, CHUNK_SIGNATURES, ChunkSignatures, hash_body

TRANSFER = "emulator.s3_transfer"
"""Key in a WSGI environment: the ``Transfer`` of its request."""

_PIECE_BYTES = 1024 * 1024
_LINE_BYTES = 16 * 1024
# Smaller answers are read completely, and so verified, before they are sent.
_AT_ONCE_BYTES = 1024 * 1024
_SIGNATURE = ("x-amz-", "awsaccesskeyid", "signature", "expires")
_ADDRESS = frozenset({"uploadid", "partnumber", "x-id"})
_CHECKSUM_HEADER = "HTTP_X_AMZ_CHECKSUM_"


class Transfer:
    """The bodies of one request and its answer.

    Attributes:
        received: the body of a put; None for every other request.
        sent: what is sent instead of the answer's body; None if the answer's body is sent as it is.
    """

    def __init__(self, journal: S3Journal | None) -> None:
        self._journal = journal
        self.received: StoredContent | None = None
        self.sent: ContentReader | None = None

    def take_sent(self, answer: Response, environ: WSGIEnvironment) -> Response:
        """Return ``answer`` with the body that is to be sent."""
        if self.sent is None:
            return answer
        answer.close()
        reader: Any = self.sent
        self.sent = None
        return Response(wrap_file(environ, reader), answer.status, answer.headers, direct_passthrough=True)

    def close(self) -> None:
        """Remove a received body that was not stored, and close a body that was not sent."""
        if self.received is not None and self._journal is not None:
            self._journal.drop_unclaimed(self.received)
        if self.sent is not None:
            self.sent.close()


def receive_body(environ: WSGIEnvironment, journal: S3Journal | None) -> Transfer:
    """Write the body of a request that puts an object or a part to a file. Other bodies are not read.

    Args:
        environ: of the request; its body is empty afterwards.
        journal: where the file is created; None if S3 is in memory only.

    Raises:
        AwsError: the body does not match its headers.
        OSError: the disk is full.
    """
    transfer = environ[TRANSFER] = Transfer(journal)
    body_hash = environ.get(BODY_HASH)
    if journal is None or not _puts_object(environ):
        if body_hash is not None and hash_body(environ) != body_hash:
            raise _other_hash()
        return transfer
    length = int(environ.get("CONTENT_LENGTH") or 0)
    stream = environ["wsgi.input"]
    trailer: dict[str, str] = {}
    if environ.get("HTTP_X_AMZ_CONTENT_SHA256", "").startswith("STREAMING-"):
        pieces = _decode_chunks(stream, trailer, environ.get(CHUNK_SIGNATURES))
    else:
        pieces = _read_pieces(stream, length)
    algorithm = _find_algorithm(environ)
    checksum = start_checksum(algorithm)
    digest = None if body_hash is None else hashlib.sha256()
    with journal.open_writer("", environ.get("PATH_INFO", "")) as writer:
        for piece in pieces:
            writer.write(piece)
            if checksum is not None:
                checksum.update(piece)
            if digest is not None:
                digest.update(piece)
        if digest is not None and digest.hexdigest() != body_hash:
            raise _other_hash()
        content = writer.finish()
        _check_length(environ, content)
        _check_md5(environ, content)
        given = environ.get(_CHECKSUM_HEADER + algorithm) or trailer.get(f"x-amz-checksum-{algorithm.lower()}")
        if checksum is not None and given not in (None, encode_checksum(checksum)):
            raise AwsError(f"The {algorithm} you specified did not match the calculated checksum.", code="BadDigest")
    transfer.received = content
    if algorithm and (checksum is not None or given):
        environ[_CHECKSUM_HEADER + algorithm] = encode_checksum(checksum) if checksum is not None else given
        environ["HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM"] = algorithm
    environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(), "0"
    environ.pop("HTTP_X_AMZ_CONTENT_SHA256", None)  # otherwise moto would decode the empty body
    return transfer


def _puts_object(environ: WSGIEnvironment) -> bool:
    """Check whether a request puts an object or a part, rather than sets an attribute or copies."""
    if environ["REQUEST_METHOD"] != "PUT" or "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return False
    names = (name.lower() for name, _ in parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    return all(name in _ADDRESS or name.startswith(_SIGNATURE) for name in names)


def _find_algorithm(environ: WSGIEnvironment) -> str:
    """Return the checksum algorithm that a request names or uses; empty if there is none."""
    named = environ.get("HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM", "")
    trailing = environ.get("HTTP_X_AMZ_TRAILER", "").lower().removeprefix("x-amz-checksum-")
    given = (name.removeprefix(_CHECKSUM_HEADER) for name in environ if name.startswith(_CHECKSUM_HEADER))
    found = named or trailing or next((name for name in given if start_checksum(name) is not None), "")
    return str(found).upper()


def _read_pieces(stream: InputStream, length: int) -> Iterator[bytes]:
    while length > 0 and (piece := stream.read(min(length, _PIECE_BYTES))):
        length -= len(piece)
        yield piece


def _decode_chunks(stream: InputStream, trailer: dict[str, str], signatures: ChunkSignatures | None) -> Iterator[bytes]:
    """Yield the content of a body in AWS's chunked encoding, and store the trailing headers in ``trailer``.

    Raises:
        AwsError: the body is truncated, or a chunk's signature does not match. The chunk's bytes were yielded already.
    """
    while True:
        line = stream.readline(_LINE_BYTES)
        said = line.partition(b"chunk-signature=")[2].strip().decode("latin-1")
        digest = hashlib.sha256()
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise _incomplete() from None
        if size <= 0:
            break
        for piece in _read_pieces(stream, size):
            size -= len(piece)
            if signatures is not None:
                digest.update(piece)
            yield piece
        if size or stream.readline(_LINE_BYTES) != b"\r\n":
            raise _incomplete()
        if signatures is not None:
            _check_chunk(signatures.check_chunk, said, digest.hexdigest())
    if signatures is not None:
        _check_chunk(signatures.check_chunk, said, digest.hexdigest())
    _read_trailer(stream, trailer, signatures)


def _read_trailer(stream: InputStream, trailer: dict[str, str], signatures: ChunkSignatures | None) -> None:
    while line := stream.readline(_LINE_BYTES).strip():
        name, _, text = line.decode("latin-1").partition(":")
        trailer[name.strip().lower()] = text.strip()
    if signatures is not None and (trailer or signatures.has_trailer):
        said = trailer.pop("x-amz-trailer-signature", "")
        lines = "".join(f"{name}:{text}\n" for name, text in trailer.items()).encode("latin-1")
        _check_chunk(signatures.check_trailer, said, lines)


def _check_chunk(check: Callable[[str, Any], None], said: str, what: str | bytes) -> None:
    try:
        check(said, what)
    except SignatureError:
        text = "The signature of a chunk of the body does not match its bytes."
        raise AwsError(text, code="SignatureDoesNotMatch", status=403) from None


def _other_hash() -> AwsError:
    text = "The provided 'x-amz-content-sha256' header does not match what was computed."
    return AwsError(text, code="XAmzContentSHA256Mismatch")


def _incomplete() -> AwsError:
    text = "You did not provide the number of bytes specified by the Content-Length HTTP header."
    return AwsError(text, code="IncompleteBody")


def _check_length(environ: WSGIEnvironment, content: StoredContent) -> None:
    said = environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or "0"
    chunked = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "").startswith("STREAMING-")
    if (not chunked or "HTTP_X_AMZ_DECODED_CONTENT_LENGTH" in environ) and said != str(content.size):
        raise _incomplete()


def _check_md5(environ: WSGIEnvironment, content: StoredContent) -> None:
    given = environ.get("HTTP_CONTENT_MD5")
    if given is None:
        return
    try:
        digest = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != len(content.md5) // 2:
        raise AwsError("The Content-MD5 you specified was invalid.", code="InvalidDigest")
    if digest.hex() != content.md5:
        raise AwsError("The Content-MD5 you specified did not match what we received.", code="BadDigest")


class ServedBody:
    """Placeholder for the bytes of an object in moto's answer. It has a length and can be sliced."""

    def __init__(self, content: StoredContent, start: int, stop: int) -> None:
        self._content, self._start, self._stop = content, start, stop

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._stop - self._start

    def __getitem__(self, part: slice) -> ServedBody:
        """Return the placeholder for a slice of the bytes."""
        start, stop, _ = part.indices(len(self))
        return ServedBody(self._content, self._start + start, self._start + max(start, stop))

    def open(self) -> ContentReader:
        """Open the bytes for reading.

        Raises:
            DamagedObjectError: the first bytes differ from what was written.
        """
        reader = ContentReader(self._content, self._start, self._stop)
        try:
            reader.read(1)
            reader.seek(0)
        except BaseException:
            reader.close()
            raise
        return reader


class _ServedKey(StoredKey):
    """An object that is being sent. Its value is a placeholder for its bytes."""

    @property
    def value(self) -> ServedBody:  # type: ignore[override]  # moto's is bytes, which it never looks into
        content: Any = self._value_buffer
        return ServedBody(content, 0, content.size)


def serving_in_pieces(get_key: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_get_key`` of moto's responses, so that its objects have placeholders as values."""

    @functools.wraps(get_key)
    def get_served_key(response: Any, *args: Any, **kwargs: Any) -> Any:
        key, not_modified = get_key(response, *args, **kwargs)
        if type(key) is StoredKey:
            served: Any = object.__new__(_ServedKey)
            vars(served).update(vars(key))
            key = served
        return key, not_modified

    return get_served_key


def taking_received(set_up: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``setup_class`` of moto's responses, so that it uses the received file as the body."""

    @functools.wraps(set_up)
    def set_up_with_body(response: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        set_up(response, request, *args, **kwargs)
        transfer = request.environ.get(TRANSFER)
        if transfer is not None and transfer.received is not None:
            content: StoredContent = transfer.received
            is_object = bool(response.parse_key_name())  # otherwise, the settings of a bucket to create
            response.body = content if is_object else content.read()

    return set_up_with_body


def passing_on(respond: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``key_response`` of moto's responses, so that an object's bytes are sent in pieces."""

    @functools.wraps(respond)
    def respond_and_pass_on(response: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        status, headers, body = respond(response, request, *args, **kwargs)
        if isinstance(body, ServedBody):
            reader = body.open()
            transfer = request.environ.get(TRANSFER)
            if transfer is None or len(body) <= _AT_ONCE_BYTES:
                with reader:
                    body = reader.read_all()
            else:
                transfer.sent, body = reader, []
        return status, headers, body

    return respond_and_pass_on
