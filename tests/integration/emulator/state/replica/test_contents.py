"""Contents of replicated objects: kept while a log entry that names them is sent."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emulator.state.replica.bucket import Bucket
from emulator.state.replica.chunks import Chunks
from emulator.state.replica.contents import Contents
from tests.integration.emulator.state.replica.memory_bucket import MemoryBucket, MemoryStore


@pytest.fixture
def bucket() -> Bucket:
    """One in memory; test_bucket.py has what an S3 answers."""
    return MemoryBucket(MemoryStore())


@pytest.fixture
def build(bucket: Bucket, tmp_path: Path) -> Iterator[Callable[..., Contents]]:
    with ThreadPoolExecutor(2) as pool:
        chunks = Chunks(bucket, "run", (), ())
        yield lambda objects=(): Contents(bucket, tmp_path, pool, chunks.keep, objects, {})


def write(folder: Path, name: str, size: int) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(bytes(size))


def test_a_file_that_is_freed_while_its_name_is_sent_stays_until_then(
    build: Callable[..., Contents], tmp_path: Path
) -> None:
    contents = build()
    write(tmp_path, "ab/1", 5)
    contents.take("ab/1")
    with contents.attempt() as freed:
        assert freed == set()
        contents.free("ab/1")  # as the index says by now, but not as it was read
        assert dict(contents.read_small()) == {"ab/1": bytes(5)}
    assert not (tmp_path / "ab/1").exists()
    with contents.attempt() as freed:
        assert freed == {"ab/1"}
        assert dict(contents.read_small()) == {}


def test_a_file_that_is_freed_before_is_never_sent(build: Callable[..., Contents], tmp_path: Path) -> None:
    contents = build()
    write(tmp_path, "ab/1", 5)
    contents.take("ab/1")
    contents.free("ab/1")
    assert not (tmp_path / "ab/1").exists()
    with contents.attempt():
        assert dict(contents.read_small()) == {}


def test_folder_and_bucket_are_compared_at_the_start(
    build: Callable[..., Contents], bucket: Bucket, tmp_path: Path
) -> None:
    write(tmp_path, "ab/small", 5)
    write(tmp_path, "ab/large", 100_000)
    for name in ("ab/old", "cd/older"):
        bucket.put(f"objects/{name}", b"")
    contents = build(["ab/old", "cd/older"])
    with contents.attempt() as freed:
        assert freed == {"ab/old", "cd/older"}
        contents.send_large()
        assert [name for name, _ in contents.read_small()] == ["ab/small"]
        contents.drop(freed)
    assert list(bucket.list("objects")) == ["ab/large"]


def test_a_large_file_that_came_after_the_others_were_sent_waits_for_the_next_time(
    build: Callable[..., Contents], bucket: Bucket, tmp_path: Path
) -> None:
    contents = build()
    with contents.attempt() as freed:
        contents.send_large()
        write(tmp_path, "ab/large", 100_000)
        contents.take("ab/large")
        assert dict(contents.read_small()) == {}
        contents.pack(freed)
        assert contents.describe_packs(freed) == {}
    with contents.attempt():
        contents.send_large()
    assert list(bucket.list("objects")) == ["ab/large"]
