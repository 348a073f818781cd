import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.jobs.staging.job_files import JobFolder, RefusedError, describe_refused
from emulator.jobs.staging.opt_ml import remove_work_folder
from emulator.jobs.uploads.artifacts import write_archive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What a job was given: a file three folders deep, as there is in a folder that it was not given."""
    for name in ("job/algo-1", "secret"):
        (tmp_path / name / "a/b/c").mkdir(parents=True)
        (tmp_path / name / "a/b/c/file").write_text(name)
    return tmp_path / "job" / "algo-1"


def replace_by_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


def read(folder: JobFolder, path: str) -> str:
    with folder.open_file(path) as file:
        return file.read().decode()


@pytest.mark.parametrize("target", ["secret", "job/algo-1"])
@pytest.mark.parametrize("place", ["", "a", "a/b", "a/b/c", "a/b/c/file"])
def test_a_link_is_followed_at_no_part_of_a_path(root: Path, place: str, target: str) -> None:
    kept = root.parents[1] / "kept"
    shutil.copytree(root.parents[1] / target, kept)
    replace_by_link(root / place, kept / place)
    folder = JobFolder(root)
    with pytest.raises(RefusedError, match=f"^'{place}' is a symbolic link$"):
        folder.open_file("a/b/c/file")
    assert folder.refused == {place: "is a symbolic link"}
    if place != "a/b/c/file":
        with pytest.raises(RefusedError), folder.open("a/b/c"):
            pass
        assert list(folder.below("a/b/c").walk()) == []
        with pytest.raises(RefusedError):
            list(folder.below("a/b/c").walk(whole=True))
    assert folder.read_small_file("a/b/c/file", 100) is None


def test_the_folder_of_a_job_is_not_reached_through_a_link_in_its_place(root: Path) -> None:
    shutil.copytree(root.parent, root.parents[1] / "other")
    replace_by_link(root.parent, root.parents[1] / "other")
    with pytest.raises(NotADirectoryError):
        JobFolder(root).open_file("a/b/c/file")


def test_a_folder_swapped_for_a_link_during_a_walk_is_not_gone_into(root: Path) -> None:
    folder = JobFolder(root)
    walk = folder.walk()
    assert next(walk)[0] == "a"
    replace_by_link(root / "a", root.parents[1] / "secret" / "a")
    assert list(walk) == []
    assert describe_refused(folder.refused).endswith("'a' is a symbolic link.")


def test_an_open_folder_stays_the_one_it_was(root: Path) -> None:
    folder = JobFolder(root).below("a")
    with folder.open() as descriptor:
        replace_by_link(root / "a", root.parents[1] / "secret" / "a")
        with folder.open_file("b/c/file", descriptor) as file:
            assert file.read() == b"job/algo-1"
    with pytest.raises(RefusedError):
        folder.open_file("b/c/file")


def test_a_file_with_a_second_name_is_refused(root: Path) -> None:
    os.link(root.parents[1] / "secret/a/b/c/file", root / "weights")
    folder = JobFolder(root)
    with pytest.raises(RefusedError, match=r"^'weights' has more than one name \(hard links\)$"):
        folder.open_file("weights")
    (root.parents[1] / "secret/a/b/c/file").unlink()
    assert read(folder, "weights") == "secret", "the job's alone now"


def test_only_plain_files_are_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        server.bind("socket")
    kinds = {"pipe": "a pipe", "socket": "a socket", "a": "a folder"}
    if os.geteuid() == 0:
        os.mknod(root / "null", 0o600 | 0o020000, os.makedev(1, 3))
        kinds["null"] = "a device"
    folder = JobFolder(root)
    for name, kind in kinds.items():
        with pytest.raises(RefusedError, match=f"^'{name}' is {kind}$"):
            folder.open_file(name)
    with pytest.raises(RefusedError, match=r"^'a/b/c/file' is a file$"), folder.open("a/b/c/file"):
        pass
    with pytest.raises(FileNotFoundError):
        folder.open_file("a/nothing")
    assert folder.read_small_file("a/b/c/file", 3) == b"job"


def test_a_file_of_the_service_is_replaced_whatever_lies_in_its_place(root: Path) -> None:
    outside = root.parents[1] / "secret/a/b/c/file"
    folder = JobFolder(root)
    # Left by an emulator that was killed, or put there by the job.
    for in_the_way in (Path.touch, lambda path: path.symlink_to(outside), lambda path: path.hardlink_to(outside)):
        in_the_way(root / "a/b/.file.new")
        folder.replace_file("a/b/file", b"first")
        folder.replace_file("a/b/file", b"second")
        assert (root / "a/b/file").read_bytes() == b"second"
        assert sorted(path.name for path in (root / "a/b").iterdir()) == ["c", "file"]
    assert outside.read_text() == "secret"
    replace_by_link(root / "a/b", root.parents[1] / "secret/a/b")
    with pytest.raises(RefusedError):
        folder.replace_file("a/b/file", b"third")
    assert not (root.parents[1] / "secret/a/b/file").exists()


@pytest.mark.slow
def test_another_file_system_is_not_gone_into(root: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from emulator.jobs.staging.job_files import *\n"
        "folder = JobFolder(pathlib.Path(sys.argv[1]))\n"
        "print([path for path, _ in folder.walk()], describe_refused(folder.refused))\n"
    )
    script = 'mount -t tmpfs none "$1/a/b" && touch "$1/a/b/secret" && exec "$0" -c "$2" "$1"'
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no mount namespace")
    ran = subprocess.run(
        [*unshare, "sh", "-c", script, sys.executable, str(root), program], check=True, capture_output=True, text=True
    )
    assert ran.stdout.startswith("['a', 'a/b'] ")
    assert "'a/b' is on another file system" in ran.stdout


@pytest.fixture
def deep_folder(tmp_path: Path) -> Iterator[Path]:
    """1,500 folders, one in the other; Python's own removal does not go so deep."""
    start = tmp_path / "job"
    start.mkdir()
    descriptor = os.open(start, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("in", dir_fd=descriptor)
        inner = os.open("in", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)
    yield start
    subprocess.run(["rm", "-rf", start], check=True)


def test_folders_without_end_are_left_at_some_depth(deep_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = JobFolder(deep_folder)
    assert len(list(folder.walk())) == 101
    assert describe_refused(folder.refused).endswith("lies more than 100 folders deep.")
    with pytest.raises(RefusedError):
        list(folder.walk(whole=True))
    remove_work_folder(deep_folder)
    assert not deep_folder.exists() or "could not be removed" in caplog.text


def test_names_are_any_bytes(tmp_path: Path) -> None:
    names = ["line\nbreak", os.fsdecode(b"\xff\xfe"), "snowman ☃", " ", "..."]
    root = tmp_path / "model"
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / name).write_text(ascii(name))
        (root / name / "link").symlink_to(name)
    folder = JobFolder(root)
    for name in names:
        assert read(folder, f"{name}/{name}") == ascii(name)
        with pytest.raises(RefusedError):
            folder.open_file(f"{name}/link")
    said = describe_refused(folder.refused)
    assert said.isprintable()
    assert said.count("is a symbolic link") == len(names)
    write_archive([folder], tmp_path / "model.tar.gz")
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        assert sorted(tar.getnames()) == sorted(path for path, _ in folder.walk())


def test_ten_refusals_of_many_are_reported(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    for number in range(50):
        (tmp_path / f"{number:02}").symlink_to("/")
        with pytest.raises(RefusedError):
            folder.open_file(f"{number:02}")
    said = describe_refused(folder.refused)
    assert said.count("is a symbolic link") == 10
    assert said.endswith(", and more.")


def test_removing_a_job_leaves_what_its_links_lead_to(root: Path) -> None:
    secret = root.parents[1] / "secret"
    (root / "link").symlink_to(secret)
    remove_work_folder(root.parent)
    assert not root.parent.exists()
    root.parent.symlink_to(secret)
    remove_work_folder(root.parent)
    assert (secret / "a/b/c/file").exists()
