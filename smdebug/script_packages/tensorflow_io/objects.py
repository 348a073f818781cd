"""Files and folders of S3, as TensorFlow asks for them."""

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

# A file is read in pieces of at least this size, in bytes: TensorFlow asks for a few bytes at a time.
_LEAST_READ = 1 << 20
_ABSENT = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})


def connect() -> Any:
    """Return a client; boto3 reads AWS's variables, of which a job has those of its endpoint."""
    import boto3

    return boto3.client("s3")


def split(path: str) -> tuple[str, str]:
    """Return the bucket and the key of a path, without a slash at either end of the key."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key.strip("/")


def _is_absent(error: Exception) -> bool:
    return getattr(error, "response", {}).get("Error", {}).get("Code") in _ABSENT


class ReadableFile:
    """An object that is read in pieces.

    Raises:
        FileNotFoundError: there is no such object.
    """

    def __init__(self, client: Any, path: str) -> None:
        self._client, self._path = client, path
        self.length = measure(client, path)
        self._begin, self._piece = 0, b""

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset, fewer at the end of the object."""
        size = min(size, max(self.length - offset, 0))
        if not (self._begin <= offset and offset + size <= self._begin + len(self._piece)):
            bucket, key = split(self._path)
            last = min(offset + max(size, _LEAST_READ), self.length) - 1
            answer = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes={offset}-{last}")
            self._begin, self._piece = offset, answer["Body"].read()
        start = offset - self._begin
        return self._piece[start : start + size]


class WritableFile:
    """An object that is written to a temporary file, and stored whole when it is flushed or closed."""

    def __init__(self, client: Any, path: str, *, append: bool) -> None:
        self._client, self._path = client, path
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._is_stored = False
        if append and kind_of(client, path) == "file":
            bucket, key = split(path)
            client.download_fileobj(bucket, key, self._file)
            self._is_stored = True

    def append(self, content: bytes) -> None:
        """Write bytes at the end."""
        self._file.write(content)
        self._is_stored = False

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self._file.tell()

    def store(self) -> None:
        """Store what was written, unless it is stored already."""
        if not self._is_stored:
            bucket, key = split(self._path)
            end = self._file.tell()
            self._file.seek(0)
            # A transfer closes the file that it is given.
            with os.fdopen(os.dup(self._file.fileno()), "rb") as file:
                self._client.upload_fileobj(file, bucket, key)
            self._file.seek(end)
            self._is_stored = True

    def close(self) -> None:
        """Store what was written, and remove the temporary file; a second call does nothing."""
        if not self._file.closed:
            self.store()
            self._file.close()

    def drop(self) -> None:
        """Remove the temporary file."""
        self._file.close()


def measure(client: Any, path: str) -> int:
    """Return the size of an object in bytes; raises FileNotFoundError if there is none."""
    return int(_head(client, path)["ContentLength"])


def describe(client: Any, path: str) -> tuple[int, int]:
    """Return the size of an object in bytes, and when it was stored, in nanoseconds since the epoch."""
    head = _head(client, path)
    return int(head["ContentLength"]), int(head["LastModified"].timestamp() * 1e9)


def _head(client: Any, path: str) -> Any:
    bucket, key = split(path)
    if not key:
        raise FileNotFoundError(f"{path} is a bucket, not an object.")
    try:
        return client.head_object(Bucket=bucket, Key=key)
    except Exception as error:
        if _is_absent(error):
            raise FileNotFoundError(f"There is no object {path}.") from error
        raise


def kind_of(client: Any, path: str) -> str:
    """Return "file", "folder" or "" for nothing; what lies below a key makes that key a folder."""
    bucket, key = split(path)
    try:
        if not key:
            client.head_bucket(Bucket=bucket)
            return "folder"
        if not path.endswith("/"):
            _head(client, path)
            return "file"
    except FileNotFoundError:
        pass
    except Exception as error:
        if not _is_absent(error):
            raise
        return ""
    return "folder" if next(_list_pages(client, path, {"MaxKeys": 1}))["KeyCount"] else ""


def make_folder(client: Any, path: str) -> None:
    """Store the empty object by which TensorFlow's own S3 file system knows an empty folder."""
    bucket, key = split(path)
    if key:
        client.put_object(Bucket=bucket, Key=f"{key}/", Body=b"")


def list_children(client: Any, path: str) -> list[str]:
    """Return the names right below a folder, those of folders without a slash."""
    _bucket, key = split(path)
    above = f"{key}/" if key else ""
    found = []
    for page in _list_pages(client, path, {"Delimiter": "/"}):
        found += [each["Key"].removeprefix(above) for each in page.get("Contents", ())]
        found += [each["Prefix"].removeprefix(above).rstrip("/") for each in page.get("CommonPrefixes", ())]
    return [name for name in found if name]


def remove(client: Any, path: str) -> None:
    """Remove an object; raises FileNotFoundError if there is none."""
    _head(client, path)
    bucket, key = split(path)
    client.delete_object(Bucket=bucket, Key=key)


def remove_folder(client: Any, path: str, *, with_content: bool) -> None:
    """Remove a folder.

    Raises:
        FileNotFoundError: there is none.
        OSError: it is not empty, and `with_content` is off.
    """
    bucket, key = split(path)
    keys = [each["Key"] for page in _list_pages(client, path, {}) for each in page.get("Contents", ())]
    if not keys:
        raise FileNotFoundError(f"There is no folder {path}.")
    if not with_content and keys != [f"{key}/"]:
        raise OSError(f"The folder {path} is not empty.")
    for each in keys:
        client.delete_object(Bucket=bucket, Key=each)


def copy(client: Any, source: str, target: str) -> None:
    """Copy an object; raises FileNotFoundError if there is none."""
    _head(client, source)
    (bucket, key), (to_bucket, to_key) = split(source), split(target)
    client.copy({"Bucket": bucket, "Key": key}, to_bucket, to_key)


def move(client: Any, source: str, target: str) -> None:
    """Rename an object, or all of a folder."""
    if kind_of(client, source) != "folder":
        copy(client, source, target)
        remove(client, source)
        return
    (bucket, key), (to_bucket, to_key) = split(source), split(target)
    for page in _list_pages(client, source, {}):
        for each in (found["Key"] for found in page.get("Contents", ())):
            client.copy({"Bucket": bucket, "Key": each}, to_bucket, f"{to_key}{each.removeprefix(key)}")
            client.delete_object(Bucket=bucket, Key=each)


def _list_pages(client: Any, path: str, options: dict[str, Any]) -> Iterator[Any]:
    bucket, key = split(path)
    prefix = f"{key}/" if key else ""
    return iter(client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **options))
