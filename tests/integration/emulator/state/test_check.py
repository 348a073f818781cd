"""Tests of the state check: damage is found, reported in one line, and repaired."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from emulator.exceptions import StartupError
from emulator.jobs.store.store import JobStore
from emulator.moto_services.damage import check_stored
from emulator.moto_services.s3.backend import open_s3
from emulator.moto_services.s3.objects import ObjectStore
from emulator.state.check import check_databases, find_database_damage

ACCOUNT = "123456789012"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """S3 with three objects, a job store, and a file of moto's."""
    s3 = open_s3(tmp_path / "s3")
    store = ObjectStore(ACCOUNT, "us-east-1")
    store.create_bucket("kept")
    for key in ("one", "two", "three"):
        store.put("kept", key, key.encode())
    s3.close()
    JobStore(tmp_path / "jobs.sqlite").close()
    return tmp_path


def find_file(state_dir: Path, data: bytes) -> Path:
    (found,) = [path for path in (state_dir / "s3" / "contents").glob("??/*") if path.read_bytes() == data]
    return found


def read_objects(state_dir: Path) -> dict[str, bytes]:
    s3 = open_s3(state_dir / "s3")
    try:
        store = ObjectStore(ACCOUNT, "us-east-1")
        return {found.key: store.get("kept", found.key) for found in store.list("kept", "")}
    finally:
        s3.close()


def overwrite_page(path: Path, page: int) -> None:
    with path.open("r+b") as target:
        target.seek(page * 4096)
        target.write(b"\xa5" * 4096)


def check_state(state_dir: Path, *, mend: bool) -> Iterator[str]:
    """What the command ``check`` prints."""
    return chain(check_databases(state_dir, mend=mend), check_stored(state_dir, mend=mend))


def test_a_sound_state_is_reported_as_sound(state_dir: Path) -> None:
    assert list(check_state(state_dir, mend=False)) == []
    done = CliRunner().invoke(main, ["check", "--state-dir", str(state_dir)])
    assert (done.exit_code, "No damage found" in done.output) == (0, True)
    done = CliRunner().invoke(main, ["check", "--state-dir", str(state_dir / "nothing")])
    assert (done.exit_code, "There is no state" in done.output) == (1, True)


def test_a_damaged_and_a_missing_object_are_found_and_taken_out(state_dir: Path) -> None:
    find_file(state_dir, b"one").write_bytes(b"onE")
    find_file(state_dir, b"two").unlink()
    done = CliRunner().invoke(main, ["check", "--state-dir", str(state_dir)])
    assert done.exit_code == 1
    assert re.search(r"s3://kept/one is damaged: .* not what was written", done.output)
    assert re.search(r"s3://kept/two is damaged: .* is missing", done.output)
    assert len(done.output.splitlines()) == 2
    done = CliRunner().invoke(main, ["check", "--mend", "--state-dir", str(state_dir)])
    assert (done.exit_code, done.output.count("Mended")) == (0, 2)
    assert [path.read_bytes() for path in (state_dir / "s3" / "lost").iterdir()] == [b"onE"]
    assert list(check_state(state_dir, mend=False)) == []
    assert read_objects(state_dir) == {"three": b"three"}


def test_a_damaged_index_keeps_what_can_be_read(state_dir: Path) -> None:
    path = state_dir / "s3" / "index.sqlite"
    with closing(sqlite3.connect(path)) as index, index:
        for number in range(500):
            index.execute(
                "INSERT INTO objects VALUES ('kept', ?, 0, NULL, 0, 0, ?, '{}', '')", (f"z{number:04}", "{}" + " " * 80)
            )
        pages = index.execute("PRAGMA page_count").fetchone()[0]
    with closing(sqlite3.connect(path)) as index:
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite_page(path, pages // 2)
    lines = list(check_state(state_dir, mend=True))
    assert "the database is damaged" in lines[0]
    found = re.search(r"Mended: (\d+) rows were kept", lines[0])
    assert found is not None
    assert 3 < int(found[1]) < 504
    assert (state_dir / "s3" / "index.sqlite.damaged").exists()
    assert find_database_damage(path) is None
    assert {key: data for key, data in read_objects(state_dir).items() if key[0] != "z"} == {
        key: key.encode() for key in ("one", "two", "three")
    }


def test_files_that_an_index_lost_are_not_thrown_away(state_dir: Path) -> None:
    (state_dir / "s3" / "index.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(StartupError, match="check --mend"):
        open_s3(state_dir / "s3")
    lines = list(check_state(state_dir, mend=True))
    assert "it begins empty" in lines[0]
    assert "3 files of S3 have lost their names" in lines[1]
    assert {path.read_bytes() for path in (state_dir / "s3" / "lost").iterdir()} == {b"one", b"two", b"three"}
    open_s3(state_dir / "s3").close()


def test_a_damaged_job_store_is_found_at_the_start_and_mended(state_dir: Path) -> None:
    path = state_dir / "jobs.sqlite"
    with closing(sqlite3.connect(path)) as store, store:
        pages = store.execute("PRAGMA page_count").fetchone()[0]
        identity = store.execute("SELECT id FROM store_identity").fetchone()
    overwrite_page(path, pages - 1)
    with pytest.raises(StartupError, match="check --mend"):
        JobStore(path)
    (line,) = check_state(state_dir, mend=True)
    assert line.startswith(f"{path}: the database is damaged")
    mended = JobStore(path)
    assert mended.id == identity[0]
    mended.close()


def test_what_is_kept_of_moto_is_read(state_dir: Path) -> None:
    folder = state_dir / "moto" / "iam" / ACCOUNT
    folder.mkdir(parents=True)
    (folder / "aws.1.state").write_bytes(b"not what was written")
    (line,) = check_state(state_dir, mend=False)
    assert "iam of the account" in line
    list(check_state(state_dir, mend=True))
    assert list(check_state(state_dir, mend=False)) == []
    assert (folder / "aws.1.damaged").exists()


def test_a_folder_in_use_is_left_alone(state_dir: Path) -> None:
    from emulator.state.folder import StateFolder

    with closing(StateFolder(state_dir)):
        done = CliRunner().invoke(main, ["check", "--mend", "--state-dir", str(state_dir)])
    assert (done.exit_code, "Another emulator" in done.output) == (1, True)
