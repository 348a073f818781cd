"""Parallel listing, reading and deletion of S3 objects."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from smdebug.exceptions import SMDebugValueError
from smdebug.storage.output import get_s3_client, split_s3_path
from smdebug.storage.s3 import explained, is_s3

Request = TypeVar("Request")
Answer = TypeVar("Answer")

__all__ = ["DeleteRequest", "ListRequest", "ReadObjectRequest", "S3Handler", "list_s3_objects"]

_THREADS = 16
# The maximum number of objects that one request deletes.
_DELETE_BATCH = 1000


@dataclass(frozen=True)
class ListRequest:
    """A listing request: keys of `Bucket` that begin with `Prefix` and sort after `StartAfter`, cut at `Delimiter`."""

    Bucket: str
    Prefix: str = ""
    Delimiter: str = ""
    StartAfter: str = ""


@dataclass(frozen=True)
class DeleteRequest:
    """A deletion request: all objects of `Bucket` whose keys begin with `Prefix`."""

    Bucket: str
    Prefix: str = ""


class ReadObjectRequest:
    """A read request: an object, or `length` bytes of it from byte `start`; without a length, up to its end."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        """Parse `s3://bucket/key`; raises SMDebugValueError for any other path, and for a length without a start."""
        self.is_s3, _, _ = is_s3(path)
        if not self.is_s3:
            raise SMDebugValueError(f"{path!r} is not a path on S3. Give one of the form s3://bucket/key.")
        if length is not None and start is None:
            raise SMDebugValueError(f"{path}: a length needs a start.")
        self.path = path
        self.bucket, self.key = split_s3_path(path)
        self.start = start
        self.length = length


class S3Handler:
    """Requests to S3. Every method raises ObjectStoreError if S3 refuses, or does not answer after retries."""

    # The number of attempts of its client.
    NUM_RETRIES = 5

    @staticmethod
    def list_prefix(request: ListRequest) -> list[str]:
        """Return sorted keys; with a delimiter, the common prefixes up to it."""
        given: dict[str, Any] = {"Bucket": request.Bucket, "Prefix": request.Prefix}
        given |= {name: value for name in ("Delimiter", "StartAfter") if (value := getattr(request, name))}
        keys: list[str] = []
        with explained("list", f"s3://{request.Bucket}/{request.Prefix}"):
            for page in get_s3_client().get_paginator("list_objects_v2").paginate(**given):
                if request.Delimiter:
                    keys += [item["Prefix"] for item in page.get("CommonPrefixes", ())]
                else:
                    keys += [item["Key"] for item in page.get("Contents", ())]
        return keys

    @classmethod
    def list_prefixes(cls, requests: Iterable[ListRequest]) -> list[list[str]]:
        """Return the keys of each request, in the order of the requests."""
        return _map(cls.list_prefix, requests)

    @staticmethod
    def get_object(request: ReadObjectRequest) -> bytes | None:
        """Return the bytes; None if there is no such object."""
        given: dict[str, Any] = {"Bucket": request.bucket, "Key": request.key}
        if request.start is not None:
            end = "" if request.length is None else str(request.start + request.length - 1)
            given["Range"] = f"bytes={request.start}-{end}"
        client = get_s3_client()
        with explained("read", request.path):
            try:
                return bytes(client.get_object(**given)["Body"].read())
            except client.exceptions.NoSuchKey:
                return None

    @classmethod
    def get_objects(cls, requests: Iterable[ReadObjectRequest]) -> list[bytes | None]:
        """Return the bytes of each request, in the order of the requests."""
        return _map(cls.get_object, requests)

    @classmethod
    def delete_prefix(cls, path: str | None = None, delete_request: DeleteRequest | None = None) -> None:
        """Delete all objects under an `s3://` path, or those of a request."""
        if delete_request is None:
            request = ReadObjectRequest(path or "")
            delete_request = DeleteRequest(request.bucket, request.key)
        keys = cls.list_prefix(ListRequest(delete_request.Bucket, delete_request.Prefix))
        with explained("delete", f"s3://{delete_request.Bucket}/{delete_request.Prefix}"):
            for at in range(0, len(keys), _DELETE_BATCH):
                objects = [{"Key": key} for key in keys[at : at + _DELETE_BATCH]]
                get_s3_client().delete_objects(Bucket=delete_request.Bucket, Delete={"Objects": objects, "Quiet": True})

    @classmethod
    def delete_prefixes(cls, requests: Iterable[DeleteRequest]) -> None:
        """Delete the objects of each request."""
        for request in requests:
            cls.delete_prefix(delete_request=request)


def _map(function: Callable[[Request], Answer], requests: Iterable[Request]) -> list[Answer]:
    # Clients are created before the threads, because creating them in several threads at once is not safe.
    get_s3_client()
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, requests))


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """Return the sorted keys under a prefix, and the last of them, or `start_after_key` if there are none.

    Raises:
        ObjectStoreError: S3 refuses, or does not answer after retries.
    """
    keys = S3Handler.list_prefix(ListRequest(bucket, prefix, delimiter, start_after_key or ""))
    return keys, keys[-1] if keys else start_after_key
