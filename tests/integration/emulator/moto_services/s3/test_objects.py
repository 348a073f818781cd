import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from moto.s3.models import s3_backends

from emulator.exceptions import NoSuchBucket, NoSuchKey
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore, S3Uri, parse_s3_uri

ACCOUNT = "123456789012"


@pytest.fixture(params=["memory", "durable"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    """S3 with one empty bucket, ``bucket``, in memory and in a folder."""
    durable = open_s3(tmp_path / "s3")
    if request.param == "memory":
        durable.close()
    store = ObjectStore(ACCOUNT, "us-east-1")
    store.create_bucket("bucket")
    yield store
    durable.close()


@pytest.mark.parametrize(
    ("uri", "parsed"),
    [
        ("s3://bucket/a/b", S3Uri("bucket", "a/b")),
        ("s3://bucket", S3Uri("bucket", "")),
        ("s3://bucket/", S3Uri("bucket", "")),
        ("s3://bucket/a//b/", S3Uri("bucket", "a//b/")),
        ("https://s3.eu-west-1.amazonaws.com/bucket/a", S3Uri("bucket", "a")),
    ],
)
def test_uris(uri: str, parsed: S3Uri) -> None:
    assert parse_s3_uri(uri) == parsed


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("", "begin with s3://"),
        ("bucket/key", "begin with s3://"),
        ("file:///etc/passwd", "begin with s3://"),
        ("s3://", "names the bucket ''"),
        ("s3:///key", "names the bucket ''"),
        ("s3://Bucket/key", "names the bucket 'Bucket'"),
        ("s3://../key", "names the bucket '..'"),
        ("https://example.com/bucket/key", "write s3://"),
    ],
)
def test_what_is_not_a_uri(uri: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_s3_uri(uri)


def test_buckets(store: ObjectStore) -> None:
    assert store.head_bucket("bucket")
    assert not store.head_bucket("other")
    store.create_bucket("bucket")


def test_put_and_get(store: ObjectStore, tmp_path: Path) -> None:
    store.put("bucket", "a/b", b"bytes")
    assert store.get("bucket", "a/b") == b"bytes"
    store.put("bucket", "a/b", b"")
    assert store.get("bucket", "a/b") == b""
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    store.put("bucket", "file", tmp_path / "file")
    (tmp_path / "file").write_bytes(b"changed later")
    assert store.get("bucket", "file") == b"x" * 3_000_000
    store.download("bucket", "file", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 3_000_000


def test_several_are_stored_at_once_or_none(store: ObjectStore, tmp_path: Path) -> None:
    contents = {f"k{number}": str(number).encode() for number in range(40)}
    store.put_all("bucket", contents)
    assert {each.key: store.get("bucket", each.key) for each in store.list("bucket", "")} == contents
    before = {each for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(NoSuchBucket):
        store.put_all("other", contents)
    after = {each for each in tmp_path.rglob("*") if each.is_file()}
    assert after == before, "what was written for them is removed"


def test_keys_are_never_paths(store: ObjectStore, tmp_path: Path) -> None:
    for key in ("../../escape", "/absolute", "a\0b", "ü" * 300, "."):
        store.put("bucket", key, key.encode())
        assert store.get("bucket", key) == key.encode()
    assert not (tmp_path / "escape").exists()
    assert len(store.list("bucket", "")) == 5


def test_list(store: ObjectStore) -> None:
    for key in ("b/2", "b/10", "a", "b"):
        store.put("bucket", key, b"123")
    listed = store.list("bucket", "b/")
    assert [(each.key, each.size) for each in listed] == [("b/10", 3), ("b/2", 3)]
    assert abs((datetime.now(UTC) - listed[0].last_modified).total_seconds()) < 60


def test_delete(store: ObjectStore) -> None:
    store.put("bucket", "k", b"")
    store.delete("bucket", "k")
    store.delete("bucket", "k")
    assert store.list("bucket", "") == []


def test_what_is_not_there_is_reported(store: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(NoSuchKey, match="The bucket 'bucket' has no object 'k'"):
        store.get("bucket", "k")
    with pytest.raises(NoSuchKey):
        store.download("bucket", "k", tmp_path / "copy")
    for action in (
        lambda: store.get("other", "k"),
        lambda: store.put("other", "k", b""),
        lambda: store.list("other", ""),
        lambda: store.delete("other", "k"),
    ):
        with pytest.raises(NoSuchBucket, match="The bucket 'other' does not exist"):
            action()
    with pytest.raises(FileNotFoundError):
        store.put("bucket", "k", tmp_path / "nothing")
    assert store.list("bucket", "") == []


def test_etags_are_md5(store: ObjectStore) -> None:
    store.put("bucket", "k", b"data")
    key = s3_backends["123456789012"]["aws"].get_object("bucket", "k")
    assert key is not None
    assert key.etag == f'"{hashlib.md5(b"data").hexdigest()}"'


def test_uploads_and_listings_at_the_same_time(store: ObjectStore) -> None:
    def upload(worker: int) -> None:
        for number in range(60):
            store.put("bucket", f"{worker}/{number}", b"x" * number)
            assert len(store.list("bucket", f"{worker}/")) == number + 1

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(upload, range(4)))
    assert len(store.list("bucket", "")) == 240
