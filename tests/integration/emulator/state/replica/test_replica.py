"""Tests of replication of a changing state folder, and of its restoration.

The copy is in the test's memory. test_bucket.py and end_to_end/test_replica.py have another S3.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.exceptions import StartupError
from emulator.state.replica import contents as contents_module
from emulator.state.replica import replica as replica_module
from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.folder import find_files
from emulator.state.replica.log import list_entries, name_entry, read_entry
from emulator.state.replica.missing import MissingObjects
from emulator.state.replica.opening import open_replica
from emulator.state.replica.replica import Replica
from tests.integration.emulator.state.replica.memory_bucket import MemoryBucket, MemoryStore
from tests.waiting import wait_until

Open = Callable[[], Bucket]

pytestmark = pytest.mark.slow


@pytest.fixture
def other_s3() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def open_bucket(other_s3: MemoryStore) -> Open:
    """Open the test's bucket, as each process that uses it does."""
    return lambda: MemoryBucket(other_s3)


class Folder:
    """A state folder that is used as the stores use it."""

    def __init__(self, path: Path, replica: Replica) -> None:
        self.path, self.replica = path, replica
        (path / "moto/sqs/1").mkdir(parents=True, exist_ok=True)
        self.stores = {name: _open_store(path / name) for name in ("jobs.sqlite", "s3/index.sqlite")}

    def add(self, name: str, store: str = "jobs.sqlite") -> None:
        self.stores[store].execute("INSERT INTO names VALUES (?)", (name,))

    def read(self, store: str = "jobs.sqlite") -> list[str]:
        return [name for (name,) in self.stores[store].execute("SELECT name FROM names ORDER BY rowid")]

    def put(self, file: str, content: str) -> None:
        """Store an object, as S3's journal does."""
        path = self.path / "s3/contents" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        self.replica.take(file)
        self.add(file, "s3/index.sqlite")

    def delete(self, file: str) -> None:
        self.stores["s3/index.sqlite"].execute("DELETE FROM names WHERE name = ?", (file,))
        (self.path / "s3/contents" / file).unlink()
        self.replica.free(file)

    def close_stores(self) -> None:
        for store in self.stores.values():
            store.close()


def _open_store(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    store = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("PRAGMA wal_autocheckpoint = 0")
    store.execute("CREATE TABLE IF NOT EXISTS names (name TEXT)")
    return store


def fail(reason: str) -> None:
    raise AssertionError(reason)


@contextmanager
def kept(bucket: Bucket, path: Path, lost: Callable[[str], None] = fail) -> Iterator[Folder]:
    """Use a state folder, and keep a copy of it."""
    path.mkdir(exist_ok=True)
    with closing(open_replica(bucket, path, lost)) as replica:
        folder = Folder(path, replica)
        try:
            replica.start()
            yield folder
        finally:
            folder.close_stores()


def test_what_is_stored_is_in_the_copy_and_a_new_folder_has_it_all(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
        folder.put("ab/1", "first")
        folder.put("cd/2", "second")
        (folder.path / "moto/sqs/1/us.1.state").write_text("old")
        (folder.path / "keys.json").write_text("keys")
        folder.replica.settle()
        folder.add("two")
        folder.delete("ab/1")
        (folder.path / "moto/sqs/1/us.1.state").rename(folder.path / "moto/sqs/1/us.2.state")
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one", "two"]
        assert folder.read("s3/index.sqlite") == ["cd/2"]
        found = {str(path.relative_to(folder.path)) for path in folder.path.glob("s3/contents/*/*")}
        assert found == {"s3/contents/cd/2"}
        assert [path.name for path in folder.path.glob("moto/sqs/1/*")] == ["us.2.state"]
        assert (folder.path / "keys.json").read_text() == "keys"


def test_what_was_settled_outlives_a_process_that_is_not_closed(open_bucket: Open, tmp_path: Path) -> None:
    """What a kill leaves: the copy as it was, and a lease of a process on the same machine, which this one is."""
    with kept(open_bucket(), tmp_path / "a") as folder:
        for number in range(20):
            folder.add(str(number))
            folder.put(f"ab/{number}", "x")
            folder.replica.settle()
        bucket = open_bucket()
        numbers = list_entries(bucket)
        assert numbers[0] == 1, "each says what came since the first"
        assert read_entry(bucket, numbers[-1]).base == 1
        copy = {key: bucket.get(key) for key in [f"log/{name}" for name in bucket.list("log")]}
        chunks = {key: bucket.get(key) for key in [f"chunks/{name}" for name in bucket.list("chunks")]}
        objects = {key: bucket.get(key) for key in [f"objects/{name}" for name in bucket.list("objects")]}
        folder.add("not settled any more")
    bucket.delete([f"log/{name}" for name in bucket.list("log")])
    for key, content in {**copy, **chunks, **objects}.items():
        bucket.put(key, content)
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == [str(number) for number in range(20)]
        assert len(list(folder.path.glob("s3/contents/ab/*"))) == 20


def test_a_database_that_nobody_has_open_is_in_the_copy_too(open_bucket: Open, tmp_path: Path) -> None:
    """As that of an account which does not ask."""
    (tmp_path / "a").mkdir()
    with closing(_open_store(tmp_path / "a" / "jobs-111122223333.sqlite")) as store:
        store.execute("INSERT INTO names VALUES ('one')")
    with kept(open_bucket(), tmp_path / "a"):
        pass
    with kept(open_bucket(), tmp_path / "b") as folder:
        store = sqlite3.connect(folder.path / "jobs-111122223333.sqlite")
        with closing(store):
            assert store.execute("SELECT name FROM names").fetchall() == [("one",)]


def test_a_database_that_comes_later_is_in_the_copy_too(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.replica.settle()
        folder.stores["jobs-111122223333.sqlite"] = _open_store(folder.path / "jobs-111122223333.sqlite")
        folder.add("one", "jobs-111122223333.sqlite")
        folder.replica.settle()
    with kept(open_bucket(), tmp_path / "b") as folder:
        store = sqlite3.connect(folder.path / "jobs-111122223333.sqlite")
        with closing(store):
            assert store.execute("SELECT name FROM names").fetchall() == [("one",)]


def test_a_checkpoint_of_another_program_loses_nothing(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
        folder.replica.settle()
        folder.add("two")
        with closing(sqlite3.connect(folder.path / "jobs.sqlite")) as stranger:
            stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        folder.add("three")
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one", "two", "three"]


def test_a_long_log_becomes_a_snapshot_and_what_it_replaces_is_removed(
    open_bucket: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "_LOG_ENTRIES", 3)
    monkeypatch.setattr(replica_module, "_CHECKPOINT_BYTES", 20_000)
    with kept(open_bucket(), tmp_path / "a") as folder:
        for number in range(15):
            folder.add(str(number))
            folder.replica.settle()
    bucket = open_bucket()
    numbers = list_entries(bucket)
    assert numbers[0] > 1
    entries = [read_entry(bucket, number) for number in numbers]
    assert [entry.snapshot is not None for entry in entries] == [True, *[False] * (len(entries) - 1)]
    named = {key for keys in (entries[0].snapshot or {}).values() for key in keys}
    assert {f"chunks/{name}" for name in bucket.list("chunks")} == named
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == [str(number) for number in range(15)]


def test_a_folder_continues_its_own_copy_and_sends_what_it_lacks(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
    with closing(_open_store(tmp_path / "a" / "jobs.sqlite")) as store:
        store.execute("INSERT INTO names VALUES ('without a copy')")
    with kept(open_bucket(), tmp_path / "a") as folder:
        assert folder.read() == ["one", "without a copy"]
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one", "without a copy"]


def test_an_older_folder_takes_what_became_of_its_state_elsewhere(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
    with kept(open_bucket(), tmp_path / "b") as folder:
        folder.add("two")
    with kept(open_bucket(), tmp_path / "a") as folder:
        assert folder.read() == ["one", "two"]
        assert (folder.path / "replaced" / "jobs.sqlite").exists()


def test_a_folder_that_was_copied_takes_what_came_after_that(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("two")
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one", "two"]


def test_a_folder_with_another_state_is_refused(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
    with closing(_open_store(tmp_path / "jobs.sqlite")):
        pass
    with pytest.raises(StartupError, match=r"and the state folder .* have different states"):
        open_replica(open_bucket(), tmp_path, fail)
    with kept(open_bucket(), tmp_path / "a") as folder:
        assert folder.read() == ["one"]


def test_a_folder_that_was_being_filled_is_filled_again(open_bucket: Open, tmp_path: Path) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
    with closing(_open_store(tmp_path / "jobs.sqlite")):
        pass
    (tmp_path / "replica.json").write_text(json.dumps({"folder": "f", "state": None, "restoring": True}))
    with kept(open_bucket(), tmp_path) as folder:
        assert folder.read() == ["one"]


def test_an_s3_that_is_away_is_reported_and_gets_all_when_it_is_back(
    open_bucket: Open, tmp_path: Path, other_s3: MemoryStore
) -> None:
    with kept(open_bucket(), tmp_path / "a") as folder:
        folder.add("one")
        folder.replica.settle()
        other_s3.away = True
        folder.add("two")
        folder.put("ab/1", "first")
        folder.replica.settle()
        assert "away since" in folder.replica.describe()
        assert "cannot be reached" in folder.replica.describe()
        other_s3.away = False
        wait_until(lambda: "away" not in folder.replica.describe(), folder.replica.describe)
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert folder.read() == ["one", "two"]
        assert (folder.path / "s3/contents/ab/1").read_text() == "first"


def test_an_emulator_whose_number_is_taken_writes_no_more(bucket: Bucket, tmp_path: Path) -> None:
    lost: list[str] = []
    with kept(bucket, tmp_path / "a", lost.append) as folder:
        folder.replica.settle()
        last = list_entries(bucket)[-1]
        bucket.put(name_entry(last + 1), replace(read_entry(bucket, last), run="another").encode())
        folder.add("one")
        wait_until(lambda: lost, "another writer was met")
    assert "was written by another emulator" in lost[0]
    assert list_entries(bucket)[-1] == last + 1


def test_an_entry_whose_answer_is_lost_is_its_own(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, create, swallowed = list[str](), bucket.create, list[str]()

    def create_without_answer(key: str, content: bytes) -> str | None:
        etag = create(key, content)
        if not swallowed:
            swallowed.append(key)
            raise BucketError("the connection was cut")
        return etag

    with kept(bucket, tmp_path / "a", lost.append) as folder:
        folder.replica.settle()
        monkeypatch.setattr(bucket, "create", create_without_answer)
        folder.add("one")
        wait_until(lambda: swallowed, "an entry was written")
        folder.add("two")
        wait_until(lambda: "away" in folder.replica.describe(), folder.replica.describe)
        wait_until(lambda: "away" not in folder.replica.describe(), folder.replica.describe)
        folder.replica.settle()
    assert not lost
    with kept(bucket, tmp_path / "b") as restored:
        assert restored.read() == ["one", "two"]


def test_a_copy_of_another_version_is_refused(open_bucket: Open, tmp_path: Path) -> None:
    import zlib

    bucket = open_bucket()
    with kept(bucket, tmp_path / "a"):
        pass
    number = list_entries(bucket)[-1]
    text = zlib.decompress(bucket.get(name_entry(number))).replace(b'"version": 1', b'"version": 2')
    bucket.put(name_entry(number), zlib.compress(text))
    with pytest.raises(StartupError, match=r"another version of the emulator .*replica 2, this one reads 1"):
        open_replica(open_bucket(), tmp_path, fail)


def test_a_chunk_that_is_damaged_is_reported(open_bucket: Open, tmp_path: Path) -> None:
    bucket = open_bucket()
    with kept(bucket, tmp_path / "a") as folder:
        folder.add("one")
    for name in list(bucket.list("chunks")):
        bucket.put(f"chunks/{name}", b"damaged")
    with pytest.raises(StartupError, match="is damaged"):
        open_replica(open_bucket(), tmp_path, fail)


@contextmanager
def kept_without_background(patch: pytest.MonkeyPatch, bucket: Bucket, path: Path) -> Iterator[Folder]:
    """Use a state folder to which objects come only when they are opened."""
    patch.setattr(MissingObjects, "start", lambda _: None)
    with kept(bucket, path) as folder:
        yield folder


def test_a_restored_folder_is_used_before_its_large_objects_are_there(
    open_bucket: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened comes at once; after a kill, the next process brings the rest; what is deleted stays away."""
    bucket, contents = open_bucket(), tmp_path / "b/s3/contents"
    with kept(bucket, tmp_path / "a") as folder:
        for number in range(4):
            folder.put(f"cd/large-{number}", str(number) * 100_000)
        folder.replica.settle()
    with monkeypatch.context() as patch, kept_without_background(patch, bucket, tmp_path / "b") as folder:
        assert list(contents.glob("*/*")) == []
        assert folder.replica.fetch("cd/large-2")
        assert folder.replica.fetch("cd/large-2")
        assert (contents / "cd/large-2").read_text() == "2" * 100_000
        assert not folder.replica.fetch("cd/none")
        folder.stores["s3/index.sqlite"].execute("DELETE FROM names WHERE name = 'cd/large-3'")
        folder.replica.free("cd/large-3")
        folder.put("cd/new", "n" * 100_000)
        folder.replica.settle()
    assert list(bucket.list("objects")) == ["cd/large-0", "cd/large-1", "cd/large-2", "cd/new"]
    with kept(open_bucket(), tmp_path / "b") as folder:
        assert not folder.replica.restored
        folder.replica.missing.wait()
        assert (contents / "cd/large-0").read_text() == "0" * 100_000
        assert {path.name for path in contents.glob("*/*")} == {"large-0", "large-1", "large-2", "new"}
        assert not list(tmp_path.glob("b/missing*"))


def test_the_rest_comes_though_the_disk_was_full(
    open_bucket: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = open_bucket()
    with kept(bucket, tmp_path / "a") as folder:
        folder.put("cd/large", "0" * 100_000)
        folder.replica.settle()
    fetch, refused = MissingObjects.fetch, list[str]()

    def fetch_later(missing: MissingObjects, name: str) -> bool:
        if not refused:
            refused.append(name)
            raise OSError(28, "No space left on device")
        return fetch(missing, name)

    monkeypatch.setattr(MissingObjects, "fetch", fetch_later)
    monkeypatch.setattr("emulator.state.replica.missing._AGAIN_SECONDS", 0.01)
    with kept(bucket, tmp_path / "b") as folder:
        folder.replica.missing.wait()
        assert (refused, folder.replica.missing.names) == (["cd/large"], frozenset())
        assert (tmp_path / "b/s3/contents/cd/large").stat().st_size == 100_000


def test_a_file_that_is_replaced_while_files_are_listed_is_in_the_copy(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its former name it is gone, and its new name was not there when the names were read."""
    states = "moto/sqs/1"
    with kept(bucket, tmp_path / "a") as folder:
        former, later = (folder.path / states / f"us.{number}.state" for number in (1, 2))
        former.write_text("former")
        folder.replica.settle()

        def replace_meanwhile(state_dir: Path) -> Iterator[Path]:
            listed = list(find_files(state_dir))
            if former.exists():
                later.write_text("later")
                former.unlink()
            yield from listed

        monkeypatch.setattr(replica_module, "find_files", replace_meanwhile)
        last = list_entries(bucket)[-1]
        folder.replica.settle()
        entry = read_entry(bucket, last + 1)
        assert (list(entry.files), entry.removed) == ([f"{states}/us.2.state"], [f"{states}/us.1.state"])
    with kept(bucket, tmp_path / "b"):
        assert [path.name for path in (tmp_path / "b" / states).iterdir()] == ["us.2.state"]


def test_small_objects_go_together_and_large_ones_alone(
    open_bucket: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "_LOG_ENTRIES", 2)
    monkeypatch.setattr(replica_module, "_ENTRY_BYTES", 5_000)
    monkeypatch.setattr(contents_module, "_PACK_BYTES", 10_000)
    bucket = open_bucket()
    with kept(bucket, tmp_path / "a") as folder:
        for number in range(30):
            folder.put(f"ab/{number}", str(number) * 500)
        folder.put("cd/large", "x" * 100_000)
        folder.replica.settle()
        folder.replica.settle()  # by now they are in packs
        for number in range(25):
            folder.delete(f"ab/{number}")
        folder.put("ab/30", "30" * 500)
        folder.replica.settle()
    assert list(bucket.list("objects")) == ["cd/large"]
    with kept(open_bucket(), tmp_path / "b") as folder:
        folder.replica.missing.wait()
        found = {path.name: path.read_text() for path in folder.path.glob("s3/contents/*/*")}
        assert found == {"large": "x" * 100_000} | {str(each): str(each) * 500 for each in range(25, 31)}
        folder.replica.settle()
        snapshot = read_entry(bucket, list_entries(bucket)[-1])
        assert sorted(name for _, members in snapshot.packs.values() for name in members) == [
            f"ab/{number}" for number in range(25, 31)
        ]
        assert sum(size for size, _ in snapshot.packs.values()) < 20_000, "mostly empty packs are made anew"
        folder.delete("cd/large")
    assert list(bucket.list("objects")) == []
