"""Image files copied into a mounted folder, and nowhere else."""

import io
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import docker
import docker.errors
import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.images.image_files import _copy_into, _read_archive
from container_runtime.spec import Mount


def write_tar(*entries: tuple[str, str | None], mode: int = 0o644) -> bytes:
    """A tar of folders (names that end with a slash), links (contents that begin with ->) and files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name.rstrip("/"))
            info.mode = mode
            text = (content or "").encode()
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            elif content is None:
                info.type = tarfile.FIFOTYPE
            elif content.startswith(("->", "=>")):
                info.type = tarfile.SYMTYPE if content.startswith("->") else tarfile.LNKTYPE
                info.linkname, text = content[2:], b""
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return buffer.getvalue()


class Image:
    """What an engine answers about one image."""

    def __init__(self, **archives: bytes) -> None:
        self.archives = archives

    @contextmanager
    def read(self, path: str) -> Iterator[IO[bytes] | None]:
        found = self.archives.get(path.removeprefix("/opt/ml/"))
        yield None if found is None else io.BytesIO(found)


def copy(folder: Path, *entries: tuple[str, str | None], own: tuple[str, ...] = ("model",), mode: int = 0o644) -> bool:
    return _copy_into(Mount(folder, "/opt/ml", own=own), Image(**{".": write_tar(*entries, mode=mode)}).read)


def list_files(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


def test_an_image_without_the_folder_has_nothing(tmp_path: Path) -> None:
    assert not _copy_into(Mount(tmp_path, "/opt/ml", own=()), Image().read)
    assert copy(tmp_path, ("./", ""))
    assert list(tmp_path.iterdir()) == []


def test_what_is_the_mounts_own_is_left_out_however_deep(tmp_path: Path) -> None:
    copy(
        tmp_path,
        ("./", ""),
        ("./model/", ""),
        ("./model/deep/", ""),
        ("./model/deep/weights", "x"),
        ("./models/", ""),
        ("./models/one", "1"),
        ("./processing/", ""),
        ("./processing/input/", ""),
        ("./processing/input/x", "x"),
        ("./processing/code.py", "2"),
        own=("model", "processing/input"),
    )
    assert list_files(tmp_path) == {"models/one": "1", "processing/code.py": "2"}


def test_the_owner_may_write_whatever_the_image_lets_it(tmp_path: Path) -> None:
    copy(tmp_path, ("./", ""), ("./code/", ""), ("./code/run", "x"), mode=0o6555)
    assert (tmp_path / "code").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "code" / "run").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "code" / "run").stat().st_mtime == 0


def test_a_file_with_two_names_becomes_two(tmp_path: Path) -> None:
    """Also where the first of them is the mount's own."""
    archives = {
        ".": write_tar(("./", ""), ("./model/", ""), ("./model/a", "same"), ("./b", "=>./model/a")),
        "b": write_tar(("b", "same")),
    }
    _copy_into(Mount(tmp_path, "/opt/ml", own=("model",)), Image(**archives).read)
    assert list_files(tmp_path) == {"b": "same"}
    assert (tmp_path / "b").stat().st_nlink == 1


def test_what_is_not_a_file_folder_or_link_is_left_out(tmp_path: Path) -> None:
    copy(tmp_path, ("./", ""), ("./pipe", None), ("./link", "->/no/where"))
    assert [each.name for each in tmp_path.iterdir()] == ["link"]
    assert str((tmp_path / "link").readlink()) == "/no/where"


def test_an_empty_folder_of_the_service_gives_way_and_a_filled_one_does_not(tmp_path: Path) -> None:
    for name in ("code", "filled"):
        (tmp_path / name).mkdir()
    (tmp_path / "filled" / "staged").write_text("staged")
    copy(tmp_path, ("./", ""), ("./code", "->/app"), ("./filled", "->/app"))
    assert str((tmp_path / "code").readlink()) == "/app"
    assert list_files(tmp_path) == {"filled/staged": "staged"}


@pytest.mark.parametrize("content", ["a file", "->/etc", "=>./other"])
def test_what_the_image_has_in_the_place_of_the_services_folders_is_left_out(tmp_path: Path, content: str) -> None:
    own = ("model", "input", "processing/input")
    for name in own:
        (tmp_path / name).mkdir(parents=True)
    copy(tmp_path, ("./", ""), ("./model", content), ("./input", content), ("./processing", content), own=own)
    assert all((tmp_path / name).is_dir() and not (tmp_path / name).is_symlink() for name in (*own, "processing"))
    assert list_files(tmp_path) == {}


def test_no_link_of_an_earlier_container_is_followed(tmp_path: Path) -> None:
    ours, folder = tmp_path / "ours", tmp_path / "ml"
    ours.mkdir()
    folder.mkdir()
    (ours / "train.py").write_text("the emulator's")
    (folder / "code").symlink_to(ours)
    (folder / "file").symlink_to(ours / "train.py")
    (folder / "second").hardlink_to(ours / "train.py")
    entries = [("./", ""), ("./code/", ""), ("./code/train.py", "image"), ("./file", "image"), ("./second", "image")]
    for _ in range(2):
        copy(folder, *entries)
        assert list_files(ours) == {"train.py": "the emulator's"}
        assert list_files(folder) == {"code/train.py": "image", "file": "image", "second": "image"}


@pytest.mark.parametrize("name", ["../outside", "code/../../outside", "/outside", "link/outside", "nowhere/outside"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "ml"
    folder.mkdir()
    copy(folder, ("./", ""), ("./code/", ""), ("./link", "->.."), (name, "x"))
    assert {each.name for each in tmp_path.rglob("*")} == {"ml", "code", "link"}


@pytest.mark.docker
def test_a_container_that_is_gone_is_not_an_image_without_files() -> None:
    with closing(connect()) as api, pytest.raises(docker.errors.NotFound), _read_archive(api, "0" * 64, "/opt/ml/."):
        pass


@pytest.mark.docker
def test_a_file_in_the_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "ml").write_text("a file")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY ml /opt/ml\n")
    with closing(docker.from_env()) as client:
        tag = f"file-for-folder:{uuid.uuid4().hex[:12]}"
        client.images.build(path=str(tmp_path), tag=tag, rm=True, forcerm=True)
        container = client.containers.create(tag, ["none"])
        try:
            read = partial(_read_archive, client.api, str(container.id))
            with pytest.raises(NotADirectoryError, match="/opt/ml is a file"):
                _copy_into(Mount(tmp_path, "/opt/ml", own=()), read)
        finally:
            container.remove(force=True)
            client.images.remove(tag, force=True)
