"""Tests of damage to the index of S3's journal: one row, or all of it."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from emulator.exceptions import DamagedObjectError
from emulator.moto_services.s3.content import ContentReader
from emulator.moto_services.s3.journal import BucketRow, ObjectRow, S3Journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[S3Journal]:
    opened = S3Journal(tmp_path)
    yield opened
    opened.close()


def read_bucket(name: str) -> BucketRow:
    if name == "unreadable":
        raise AttributeError("no such thing")
    return BucketRow(name, "1", "us-east-1", 0.0, "{}", "")


def read_object(bucket: str, key: str) -> Sequence[ObjectRow]:
    return [ObjectRow(bucket, key, 0, None, 0, 0.0, "{}", "{}", "")]


def test_a_row_that_cannot_be_read_or_written_is_left_out_and_said_once(
    journal: S3Journal, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        for bucket in ("one", "unreadable", "two"):
            journal.touch_bucket(bucket)
        # SQLite takes no lone surrogate.
        for key in ("k", "\udcff"):
            journal.touch("one", key)
        journal.commit(read_bucket, read_object)
    assert [row.name for row in journal.read_buckets()] == ["one", "two"]
    assert [row.key for row in journal.read_objects()] == ["k"]
    assert sorted(record.message.partition(" cannot")[0] for record in caplog.records) == [
        "S3: the object '\\udcff' of the bucket one",
        "S3: the record of the bucket unreadable",
    ]


def test_what_could_not_be_read_is_not_tried_again_by_others(journal: S3Journal) -> None:
    asked: list[str] = []

    def note(name: str) -> BucketRow:
        asked.append(name)
        return read_bucket(name)

    journal.touch_bucket("unreadable")
    journal.commit(note, read_object)
    asked.clear()
    journal.touch_bucket("one")
    journal.commit(note, read_object)
    assert asked == ["one"]


def test_an_index_that_fails_is_owed_what_it_missed(journal: S3Journal, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    journal._index.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    journal.touch_bucket("one")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        journal.commit(read_bucket, read_object)
    # Who only reads is not harmed.
    journal.commit(read_bucket, read_object)
    other.execute("ROLLBACK")
    other.close()
    journal.touch_bucket("two")
    journal.commit(read_bucket, read_object)
    assert [row.name for row in journal.read_buckets()] == ["one", "two"]


class Elsewhere:
    """Keeps one file, and brings it when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, bytes] = {}
        self.asked: list[str] = []

    def take(self, file: str) -> None:
        self.kept[file] = (self.folder / "contents" / file).read_bytes()

    def free(self, file: str) -> None:
        raise AssertionError(file)

    def fetch(self, file: str) -> bool:
        self.asked.append(file)
        if file in self.kept:
            (self.folder / "contents" / file).write_bytes(self.kept[file])
        return file in self.kept


def test_a_file_that_is_elsewhere_comes_when_it_is_opened(tmp_path: Path) -> None:
    elsewhere = Elsewhere(tmp_path)
    journal = S3Journal(tmp_path, follower=elsewhere)
    content = journal.stage("bucket", "key", b"large")
    journal.claim(content)
    content.path.unlink()
    with ContentReader(content) as reader:
        assert reader.read() == b"large"
    content.path.unlink()
    assert journal.stage_copy("bucket", "copy", content).path.read_bytes() == b"large"
    assert elsewhere.asked == [content.file] * 2
    content.path.unlink()
    elsewhere.kept.clear()
    with pytest.raises(DamagedObjectError, match="is missing"):
        ContentReader(content)
    elsewhere.kept[content.file] = b"large"
    journal.close()
    with pytest.raises(DamagedObjectError, match="is missing"):
        ContentReader(content)
