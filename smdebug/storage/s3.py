"""Read access to S3: client, objects, and the files of a run.

A refresh of a trial is one LIST request that starts after the newest known index file. Its response also contains the
end-of-job file, whose name sorts after `index/`.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from smdebug.environment import S3_OUTAGE_WAIT_KEY, read_number
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from smdebug.format.locations import COLLECTIONS_DIR, COLLECTIONS_SUFFIX, END_OF_JOB_FILE, INDEX_DIR
from smdebug.logger import get_logger
from smdebug.storage.outage import ObjectStoreError

# About the number of bytes that a connection transfers in the time that another request takes.
REQUEST_BYTES = 256 * 1024
_THREADS = 16
_ATTEMPTS = 5
_ANSWER_SECONDS = 30
# The pause between two attempts during an outage, in addition to the pauses of boto3.
_OUTAGE_PAUSE_S = 0.5
_UNUSED = re.compile(rb"<(LastModified|ETag|StorageClass|ChecksumAlgorithm|ChecksumType)>[^<]*</\1>")


def get_path_text(path: str | os.PathLike[str]) -> str:
    """Return a path or path object as text. The slash that pathlib removes from `s3://` is restored.

    Raises:
        SMDebugTypeError: the argument is neither.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise SMDebugTypeError(f"A path is a text or a path object, not {path!r}.")
    if text is not path and text.startswith("s3:/") and not text.startswith("s3://"):
        return f"s3://{text.removeprefix('s3:/')}"
    return text


def is_s3(path: str | os.PathLike[str]) -> tuple[bool, str, str]:
    """Split `s3://bucket/key` into (True, bucket, key); return (False, "", "") for anything else."""
    path = get_path_text(path)
    if not path.startswith("s3://"):
        return False, "", ""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return True, bucket, key


def build_s3_client(*, answer_seconds: float = _ANSWER_SECONDS, attempts: int = _ATTEMPTS) -> Any:
    """Return an S3 client configured by the environment: AWS_ENDPOINT_URL, AWS_REGION, and boto3's credentials.

    Args:
        answer_seconds: the timeout for a response, or the next part of it.
        attempts: how often a request is sent before it fails.

    Raises:
        SMDebugError: boto3 is not installed.
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise SMDebugError("Reading a run on S3 needs boto3: pip install boto3.") from error
    has_endpoint = bool(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"))
    return boto3.client(
        "s3",
        region_name=os.environ.get("AWS_REGION") or None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": attempts},
            connect_timeout=5,
            read_timeout=answer_seconds,
            max_pool_connections=_THREADS,
            # Custom endpoints seldom have a DNS name for each bucket.
            s3={"addressing_style": "path"} if has_endpoint else {},
        ),
    )


@contextmanager
def explained(verb: str, path: str) -> Iterator[None]:
    """Convert errors of boto3 into an error that says what to check."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        cause = str(error).rstrip(".")
        raise ObjectStoreError(
            f"Could not {verb} {path}: {cause}. Check the bucket, AWS_ENDPOINT_URL, AWS_REGION and the credentials."
        ) from error


def _drop_unused(response_dict: dict[str, Any], **_: object) -> None:
    """Remove unused elements from a LIST response: parsing a thousand dates takes longer than everything else."""
    response_dict["body"] = _UNUSED.sub(b"", response_dict["body"])


class S3Objects:
    """Lists and reads the objects under one prefix.

    Args:
        path: `s3://bucket/prefix`.
        client: a boto3 S3 client; by default one configured by the environment.

    Raises:
        SMDebugValueError: the path has no bucket.
        ObjectStoreError: raised by any method if S3 refuses a request or cannot be reached after retries.
    """

    def __init__(self, path: str, client: Any = None) -> None:
        on_s3, self._bucket, self._prefix = is_s3(path)
        if not on_s3 or not self._bucket:
            raise SMDebugValueError(f"{path!r} is not an S3 path. Use the form s3://bucket/prefix.")
        self._prefix = self._prefix.rstrip("/")
        if client is None:
            client = build_s3_client()
            client.meta.events.register("before-parse.s3.ListObjectsV2", _drop_unused)
        self._client = client

    def list_keys(self, under: str, start_after: str = "") -> list[str]:
        """Return keys that begin with `under` and sort after `start_after`; all relative to the prefix."""
        return list(self.list_sizes(under, start_after))

    def list_sizes(self, under: str, start_after: str = "") -> dict[str, int]:
        """Return the result of `list_keys` with the sizes of the objects in bytes."""
        after = {"StartAfter": self.locate(start_after)} if start_after else {}
        return {
            item["Key"].removeprefix(self._prefix): item["Size"]
            for page in self._list_pages(under, after)
            for item in page.get("Contents", ())
        }

    def find_first_key(self, under: str) -> str:
        """Return the first key that begins with `under`, relative to the prefix; an empty text if there is none."""
        page = next(self._list_pages(under, {"MaxKeys": 1}))
        return next((str(item["Key"]).removeprefix(self._prefix) for item in page.get("Contents", ())), "")

    def list_folders(self, under: str) -> list[str]:
        """Return the sorted names of the folders directly below `under`, which ends with a slash."""
        pages = self._list_pages(under, {"Delimiter": "/"})
        found = [folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", ())]
        return [prefix.removeprefix(self.locate(under)).rstrip("/") for prefix in found]

    def _list_pages(self, under: str, options: Mapping[str, str | int]) -> Iterator[Any]:
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self.locate(under), **options}
        with explained("list", f"s3://{self._bucket}/{self.locate(under)}"):
            while True:
                page = self._send(self._client.list_objects_v2, request)
                yield page
                if not page.get("IsTruncated"):
                    break
                request["ContinuationToken"] = page["NextContinuationToken"]

    def get(self, name: str, start: int | None = None, length: int = 0) -> bytes:
        """Return an object, or `length` bytes of it from `start` on; fewer, or none, if it ends earlier.

        Raises:
            FileNotFoundError: the object does not exist.
        """
        from botocore.exceptions import ClientError

        path = f"s3://{self._bucket}/{self.locate(name)}"
        request: dict[str, Any] = {"Bucket": self._bucket, "Key": self.locate(name)}
        if start is not None:
            request["Range"] = f"bytes={start}-{start + length - 1}"
        with explained("read", path):
            try:
                return self._get_whole_body(request)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code")
                if code in ("NoSuchKey", "404"):
                    raise FileNotFoundError(path) from error
                if code in ("InvalidRange", "416"):
                    return b""
                raise

    def _get_whole_body(self, request: dict[str, Any]) -> bytes:
        """Repeat a request if the connection fails while the body is received, which boto3 does not retry."""
        from botocore.exceptions import IncompleteReadError, ReadTimeoutError, ResponseStreamingError

        for attempt in range(_ATTEMPTS):
            body = self._send(self._client.get_object, request)["Body"]
            try:
                return bytes(body.read())
            except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _send(self, method: Callable[..., Any], request: Mapping[str, Any]) -> Any:
        """Send a request; if there is no connection, repeat it for up to SMDEBUG_S3_OUTAGE_WAIT seconds."""
        from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError

        deadline = time.monotonic() + read_number(S3_OUTAGE_WAIT_KEY, 0)
        while True:
            try:
                return method(**request)
            except (ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError) as error:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                get_logger().warning("S3 does not respond; retrying for %.0f more seconds: %s", left, error)
                time.sleep(min(left, _OUTAGE_PAUSE_S))

    def locate(self, name: str) -> str:
        """Return the key of a name relative to the prefix."""
        return (self._prefix + name).lstrip("/")


class S3RunFiles:
    """The `smdebug.reading.run_files.RunFiles` of a run under `s3://bucket/prefix`; errors as in `S3Objects`."""

    def __init__(self, path: str, client: Any = None) -> None:
        # Writers collapse repeated slashes as well.
        self._path = re.sub(r"(?<!:)//+", "/", path)
        self._open(client)
        self._has_other_keys = False
        # Whether the end-of-job file was found; then no more files will come.
        self._ended = False
        # The sizes of the files that were listed last.
        self._listed: dict[str, int] = {}

    def _open(self, client: Any = None) -> None:
        self._process = os.getpid()
        self._opened_objects = S3Objects(self._path, client)
        self._opened_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="smdebug-s3")

    def _open_in_fork(self) -> None:
        """In a forked process, open anew: the connections are the parent's, whose threads are not in this process."""
        if self._process != os.getpid():
            self._open()

    @property
    def _objects(self) -> S3Objects:
        self._open_in_fork()
        return self._opened_objects

    @property
    def _pool(self) -> ThreadPoolExecutor:
        self._open_in_fork()
        return self._opened_pool

    def list_collections_files(self) -> list[str]:
        names = self._list(f"{COLLECTIONS_DIR}/", "")
        return [name for name in names if name.endswith(COLLECTIONS_SUFFIX)]

    def list_index_files(self, start_after: str) -> tuple[list[str], bool]:
        had_ended = self._ended
        names, self._ended = self._list_once(start_after)
        if self._ended and not had_ended:
            # A LIST is not a snapshot: an index file may have appeared behind the position that was listed already.
            names, _ = self._list_once(start_after)
        return [name for name in names if name.endswith(".json")], self._ended

    def _list_once(self, start_after: str) -> tuple[list[str], bool]:
        if self._has_other_keys:
            self._listed = self._list(f"{INDEX_DIR}/", start_after)
            return list(self._listed), self.has_ended()
        names = []
        self._listed = self._list("", max(start_after, f"{INDEX_DIR}/"))
        for name in self._listed:
            if name.startswith(f"{INDEX_DIR}/"):
                names.append(name)
            elif name == END_OF_JOB_FILE:
                return names, True
            else:
                # TensorBoard files would be listed at every refresh: from now on list the two separately.
                self._has_other_keys = True
        return names, False

    def list_index_blocks(self) -> list[str]:
        """One request, or few."""
        return self._objects.list_folders(f"/{INDEX_DIR}/")

    def list_index_block(self, block: str) -> list[str]:
        return [name for name in self._list(f"{INDEX_DIR}/{block}/", "") if name.endswith(".json")]

    def list_first_index_files(self, blocks: Sequence[str]) -> list[str]:
        """One small request per folder, several of them concurrently."""
        keys = self._pool.map(self._objects.find_first_key, (f"/{INDEX_DIR}/{block}/" for block in blocks))
        return [key.removeprefix("/") for key in keys if key.endswith(".json")]

    def measure_index_files(self, names: Sequence[str]) -> list[int | None]:
        """Without a request."""
        return [self._listed.get(name) for name in names]

    def has_ended(self) -> bool:
        self._ended = END_OF_JOB_FILE in self._list(END_OF_JOB_FILE, "")
        return self._ended

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Several objects concurrently."""
        if len(names) == 1:
            return [self._get(names[0])]
        return list(self._pool.map(self._get, names))

    def read_range(self, name: str, start: int, length: int) -> memoryview:
        return memoryview(self._get(name, start, length))

    def read_ranges(self, ranges: Sequence[tuple[str, int, int]]) -> list[memoryview | None]:
        """One GET request per range, several of them concurrently."""
        # A single request does not use the pool, whose threads keep much of the memory of a large object.
        get_all = map if len(ranges) == 1 else self._pool.map
        return list(get_all(lambda part: self._get_if_there(*part), ranges))

    def forget(self, name: str) -> None:
        """Nothing: no object stays open."""

    @property
    def request_bytes(self) -> int:
        return REQUEST_BYTES

    def locate(self, name: str) -> str:
        """The key, without scheme and bucket."""
        return self._objects.locate(f"/{name}")

    def _list(self, under: str, start_after: str) -> dict[str, int]:
        # With a slash, so that run1 does not match run10.
        after = f"/{start_after}" if start_after else ""
        sizes = self._objects.list_sizes(f"/{under}", after)
        return {key.removeprefix("/"): size for key, size in sizes.items()}

    def _get(self, name: str, start: int | None = None, length: int = 0) -> bytes:
        return self._objects.get(f"/{name}", start, length)

    def _get_if_there(self, name: str, start: int, length: int) -> memoryview | None:
        try:
            return self.read_range(name, start, length)
        except FileNotFoundError:
            # The caller reads it again and reports the tensor.
            return None
