import os
import tarfile
from pathlib import Path

from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.staging.opt_ml import OptMl
from emulator.jobs.uploads.artifacts import read_failure, write_archive


def test_archive_holds_files_folders_and_links_only(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.bin").write_bytes(b"a")
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    packed = JobFolder(folder)
    write_archive([packed], tmp_path / "model.tar.gz")
    assert packed.refused == {"pipe": "is a pipe"}
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        assert sorted(tar.getnames()) == ["link", "sub", "sub/a.bin"]
        assert tar.getmember("link").issym(), "the link, never what it points to"
        assert {entry.uname for entry in tar} == {"root"}


def test_archive_of_several_hosts_takes_a_name_from_the_first_that_has_it(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "sub").mkdir(parents=True)
        (folder / "same").write_text(folder.name)
        (folder / "sub" / folder.name).touch()
    (first / "file-here").touch()
    (second / "file-here").mkdir()
    (second / "file-here" / "inside").touch()
    write_archive([JobFolder(first), JobFolder(second)], tmp_path / "model.tar.gz")
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        assert sorted(set(tar.getnames())) == ["file-here", "same", "sub", "sub/first", "sub/second"]
        same = tar.extractfile("same")
        assert same is not None
        assert same.read() == b"first"
        assert tar.getmember("file-here").isfile()


def test_folder_that_is_gone_makes_an_empty_archive(tmp_path: Path) -> None:
    write_archive([JobFolder(tmp_path / "gone")], tmp_path / "x.tar.gz")
    with tarfile.open(tmp_path / "x.tar.gz") as tar:
        assert tar.getnames() == []


def test_failure_is_cut_at_1024_characters_not_bytes(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    opt_ml, failure = OptMl(tmp_path), tmp_path / "output" / "failure"
    assert read_failure(opt_ml) == ""
    failure.write_text("ü" * 2_000)
    assert read_failure(opt_ml) == "ü" * 1024
    failure.write_bytes(b"bad \xff byte")
    assert read_failure(opt_ml) == "bad � byte"
