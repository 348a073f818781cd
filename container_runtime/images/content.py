"""What goes into an image, from the files of the checkout: keys that name it and build contexts that hold it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import tomllib
import zipfile
from typing import IO, TYPE_CHECKING

from container_runtime.images.wheelhouse import build_project_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def key_of_project(checkout: Path) -> str:
    """Key of what is installed as smdebug: its files and what the build reads of pyproject.toml."""
    table = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    packaging = {"build-system": table["build-system"], "project": table["project"], "hatch": table["tool"]["hatch"]}
    return hash_parts(read_files(checkout / "smdebug"), json.dumps(packaging, sort_keys=True))


def read_files(folder: Path, without: Iterable[str] = ()) -> list[tuple[str, bytes]]:
    """Relative path and bytes of every file below ``folder``, sorted; names in ``without`` are left out."""
    left_out = {"__pycache__", *without}
    return [
        (str(path.relative_to(folder)), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not left_out.intersection(path.relative_to(folder).parts)
    ]


def hash_parts(files: Iterable[tuple[str, bytes]], *texts: str) -> str:
    """Short text that changes when a file's name or bytes or one of ``texts`` does."""
    digest = hashlib.sha256()
    for part in (*(part for name, data in files for part in (name.encode(), data)), *(text.encode() for text in texts)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def unpack_smdebug(checkout: Path, temporary: Path) -> Path:
    """Folder with the installed form of our smdebug package, its ``.pth`` included, made by way of a wheel.

    Raises:
        WheelhouseError: the wheel cannot be built.
    """
    cached = checkout / ".cache" / "wheels" / f"smdebug-{key_of_project(checkout)}"
    if not cached.is_dir():
        source = temporary / "source"
        source.mkdir()
        # Of the project only smdebug: a change elsewhere then leaves the image as it is.
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(checkout / "smdebug", source / "smdebug", ignore=ignored)
        shutil.copy2(checkout / "pyproject.toml", source)
        (source / "README.md").write_text("smdebug, as it is in the images.\n", encoding="utf-8")
        wheel = build_project_wheel(source, temporary / "wheel")
        for old in cached.parent.glob("smdebug-*"):
            shutil.rmtree(old)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(temporary / "unpacked")  # noqa: S202 - built here a moment ago
        cached.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(temporary / "unpacked", cached)
    return cached


def write_context(file: IO[bytes], contents: dict[str, Path | bytes]) -> None:
    """Write a build context: a tar that is the same for the same contents, so that the engine's cache works."""
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in contents.items():
            if isinstance(content, bytes):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(_make_plain(info), io.BytesIO(content))
            else:
                tar.add(content, arcname=name, filter=_keep_plain)
    file.seek(0)


def _keep_plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if info.name.rpartition("/")[2] == "__pycache__" else _make_plain(info)


def _make_plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = 0
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode = 0o755 if info.isdir() else 0o644
    return info
