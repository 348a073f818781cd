"""Replica bucket: requests to the other S3, and their errors.

boto3 finds the credentials on the emulator's side. No container has access to them, or to this S3.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from emulator.exceptions import StartupError

CONNECTIONS = 16
"""How many requests are sent at once."""
# Files of this size or larger are sent in parts, which fit into memory and can be resent one by one.
_PARTS_BYTES = 16 * 1024**2
_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 3, 20, 3
_DELETED_AT_ONCE = 1000
# Errors of a condition that does not hold, or (AWS) of one that a concurrent request is about to decide.
_PRECONDITION, _CONFLICT = 412, 409
_KEY_CODES = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "ExpiredToken", "InvalidToken"}


class BucketError(Exception):
    """A request failed; the text says why, and what to do."""


class Found(NamedTuple):
    """An object and its state when it was read.

    Attributes:
        content: its whole content.
        etag: identifies this content in conditions.
        age: seconds since it was written, by the clock of its S3.
    """

    content: bytes
    etag: str
    age: float


class Bucket:
    """A bucket, or the part of it below a prefix. Thread safe."""

    def __init__(self, endpoint_url: str, place: str) -> None:
        """Find credentials; send nothing yet.

        Args:
            endpoint_url: the URL of the S3.
            place: ``NAME`` or ``NAME/PREFIX``.

        Raises:
            StartupError: there are no credentials, or they cannot be read.
        """
        # Imported here: only an emulator with such a bucket needs it.
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        name, _, prefix = place.partition("/")
        self._name, self._prefix = name, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint_url = endpoint_url
        amazon = (urlsplit(endpoint_url).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=CONNECTIONS,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            s3={"addressing_style": "auto" if amazon else "path"},
        )
        try:
            session = boto3.Session()
            if session.get_credentials() is None:
                raise StartupError(
                    f"{self}: there are no credentials for it. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                    "AWS_PROFILE, where the emulator is started."
                )
            region = session.region_name or "us-east-1"
            make: Any = session.client
            self._client: Any = make("s3", endpoint_url=endpoint_url, region_name=region, config=config)
        except (BotoCoreError, ValueError) as error:
            raise StartupError(f"--s3-endpoint {endpoint_url}, --s3-bucket {place}: {error}") from error

    def __str__(self) -> str:
        """Return the bucket's name for messages."""
        return f"s3://{self._name}/{self._prefix} at {self._endpoint_url}".replace("/ at", " at")

    def probe(self) -> None:
        """Check that objects can be listed, written and deleted, and that conditions are respected.

        Raises:
            BucketError: one of these fails.
        """
        key = f"probe-{uuid.uuid4().hex}"
        with self._translated():
            self._client.list_objects_v2(Bucket=self._name, Prefix=self._prefix, MaxKeys=1)
        self.create(key, b"1")
        heeded = self.create(key, b"2") is None
        self.delete([key])
        if not heeded:
            raise BucketError(
                f"{self} ignores If-None-Match, which keeps two emulators from writing to the same bucket: use an S3 "
                "that supports it, such as AWS's or a MinIO of 2024 or later."
            )

    def create(self, key: str, content: bytes) -> str | None:
        """Create an object and return its ETag; return None if it already exists with another content.

        Raises:
            BucketError: it could not be written.
        """
        return self._put_if(key, content, IfNoneMatch="*")

    def replace(self, key: str, content: bytes, etag: str) -> str | None:
        """Overwrite an object if it still has this ETag and return the new ETag; return None if it has another.

        Raises:
            BucketError: it could not be written.
        """
        return self._put_if(key, content, IfMatch=etag)

    def put(self, key: str, content: bytes) -> None:
        """Write an object.

        Raises:
            BucketError: it could not be written.
        """
        with self._translated():
            self._client.put_object(Bucket=self._name, Key=self._prefix + key, Body=content)

    def put_file(self, key: str, path: Path) -> None:
        """Write a file.

        Raises:
            FileNotFoundError: the file was removed.
            BucketError: it could not be written.
        """
        if path.stat().st_size < _PARTS_BYTES:
            self.put(key, path.read_bytes())
            return
        from boto3.exceptions import Boto3Error

        try:
            with self._translated():
                self._client.upload_file(str(path), self._name, self._prefix + key)
        except Boto3Error as error:
            raise BucketError(f"{self}: {error}") from error

    def find(self, key: str) -> Found | None:
        """Return an object; None if it does not exist.

        Raises:
            BucketError: it could not be read.
        """
        from botocore.exceptions import ClientError

        with self._translated():
            try:
                answer = self._client.get_object(Bucket=self._name, Key=self._prefix + key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                    return None
                raise
            content = answer["Body"].read()
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return Found(content, answer["ETag"], (now - answer["LastModified"]).total_seconds())

    def get(self, key: str) -> bytes:
        """Return an object's content.

        Raises:
            BucketError: it does not exist, or could not be read.
        """
        found = self.find(key)
        if found is None:
            raise BucketError(f"{self}: {self._prefix}{key} is missing, which is part of the state that is kept there.")
        return found.content

    def get_file(self, key: str, path: Path) -> None:
        """Write an object's content to a new file.

        Raises:
            BucketError: it could not be read.
        """
        with self._translated(), path.open("xb") as target:
            answer = self._client.get_object(Bucket=self._name, Key=self._prefix + key)
            for piece in answer["Body"].iter_chunks(1 << 20):
                target.write(piece)

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names below ``folder``, relative to it and in order.

        Raises:
            BucketError: they could not be listed.
        """
        below = f"{self._prefix}{folder}/"
        with self._translated():
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=below):
                for each in page.get("Contents", ()):
                    yield each["Key"].removeprefix(below)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, if they exist.

        Raises:
            BucketError: they could not be deleted.
        """
        every = [{"Key": self._prefix + key} for key in keys]
        for start in range(0, len(every), _DELETED_AT_ONCE):
            some = every[start : start + _DELETED_AT_ONCE]
            with self._translated():
                answer = self._client.delete_objects(Bucket=self._name, Delete={"Objects": some, "Quiet": True})
            if errors := answer.get("Errors"):
                raise BucketError(f"{self}: {errors[0].get('Key')} cannot be deleted ({errors[0].get('Message')}).")

    def _put_if(self, key: str, content: bytes, **condition: str) -> str | None:
        for _ in range(_ATTEMPTS):
            if (etag := self._try_put(key, content, **condition)) is not None:
                return etag
            # If the answer to a request was lost, the request is resent and may find what it has written itself.
            found = self.find(key)
            if found is not None:
                return found.etag if found.content == content else None
            if "IfMatch" in condition:
                return None
        raise BucketError(f"{self}: {key} cannot be created, though it is not there.")

    def _try_put(self, key: str, content: bytes, **condition: str) -> str | None:
        from botocore.exceptions import ClientError

        with self._translated():
            try:
                answer = self._client.put_object(Bucket=self._name, Key=self._prefix + key, Body=content, **condition)
                return str(answer["ETag"])
            except ClientError as error:
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
                code = error.response.get("Error", {}).get("Code")
                if status not in (_PRECONDITION, _CONFLICT) and code != "NoSuchKey":
                    raise
        return None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Convert boto3's errors to BucketError."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError

        try:
            yield
        except ClientError as error:
            raise BucketError(f"{self}: {self._explain(error.response)}") from error
        except ResponseParserError as error:
            raise BucketError(f"{self}: the server there is not an S3. Give another --s3-endpoint.") from error
        except (BotoCoreError, HTTPClientError, HTTPError) as error:
            text = str(error).rstrip(".")
            raise BucketError(f"{self} cannot be reached ({text}): start it, or give another --s3-endpoint.") from error

    def _explain(self, response: Any) -> str:
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        said = str(response.get("Error", {}).get("Message", ""))
        if code == "NoSuchBucket":
            return f"there is no bucket {self._name}. Create it, or name another with --s3-bucket."
        if code in _KEY_CODES or status in (401, 403):
            return (
                f"the credentials that boto3 finds are refused ({code}: {said}). They need to list the bucket, and to "
                "read, write and delete objects in it."
            )
        if code.isdecimal() or not code:
            return f"the server there is not an S3 (HTTP {status}). Give another --s3-endpoint."
        return f"it answers {code}: {said}"
