"""Tests of archives of a state that are not what an export wrote."""

import errno
import io
import os
import tarfile
from pathlib import Path

import pytest

from emulator.exceptions import AwsError, ValidationException
from emulator.state.archive import apply_staged, stage_archive, write_archive


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    state = tmp_path / "exported"
    (state / "s3").mkdir(parents=True)
    (state / "s3" / "object").write_text("new")
    write_archive(state, tmp_path / "state.tar")
    return tmp_path / "state.tar"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    (folder / "s3").mkdir(parents=True)
    return folder


def test_what_an_interrupted_import_left_is_no_part_of_the_next(exported: Path, state_dir: Path) -> None:
    (state_dir / "import.partial" / "s3").mkdir(parents=True)
    (state_dir / "import.partial" / "s3" / "left").touch()
    stage_archive(exported, state_dir)
    apply_staged(state_dir)
    assert [path.name for path in (state_dir / "s3").iterdir()] == ["object"]
    assert sorted(path.name for path in state_dir.iterdir()) == ["last-import", "s3"]


def test_the_next_start_removes_what_an_interrupted_import_left(state_dir: Path) -> None:
    (state_dir / "import.partial").mkdir()
    apply_staged(state_dir)
    assert [path.name for path in state_dir.iterdir()] == ["s3"]


@pytest.mark.parametrize("name", ["keys.json", "emulator.lock", "tls/key.pem", "s3/../keys.json", "jobs.sqlite/x"])
def test_an_archive_brings_nothing_but_a_state(exported: Path, state_dir: Path, name: str) -> None:
    with tarfile.open(exported, "a") as archive:
        member = tarfile.TarInfo(name)
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    with pytest.raises(ValidationException, match=r"This archive has .*, which is no part of a state"):
        stage_archive(exported, state_dir)
    assert [path.name for path in state_dir.iterdir()] == ["s3"]


def test_a_full_disk_is_not_taken_for_a_damaged_archive(
    exported: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tarfile.TarFile, "makefile", fill)
    with pytest.raises(AwsError, match=f"no space in {state_dir} .* free some space") as refused:
        stage_archive(exported, state_dir)
    assert refused.value.status == 507
    assert [path.name for path in state_dir.iterdir()] == ["s3"]
