"""Build contexts of images, and keys that change with their content."""

import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

# Bytecode, the sources of the console's page, and the file that a wheel and an image have as smdebug_autoload.pth but
# only a checkout has inside smdebug.
# Without them an image and its key are the same whether it is built from a wheel or from a checkout.
_LEFT_OUT = frozenset({"__pycache__", "autoload.pth", "web"})


def key_of_contents(contents: Mapping[str, Path | bytes]) -> str:
    """Return a key for files and folders, computed from their names and bytes."""
    files = []
    for name, content in contents.items():
        if isinstance(content, bytes):
            files.append((name, content))
        elif content.is_dir():
            files += [(f"{name}/{path}", data) for path, data in read_files(content)]
        else:
            files.append((name, content.read_bytes()))
    return hash_parts(files)


def read_files(folder: Path, without: Iterable[str] = ()) -> list[tuple[str, bytes]]:
    """Return relative path and bytes of every file below ``folder`` that an image gets, sorted.

    Files and folders with a name in ``without`` are left out.
    """
    left_out = _LEFT_OUT.union(without)
    return [
        (str(path.relative_to(folder)), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not left_out.intersection(path.relative_to(folder).parts)
    ]


def hash_parts(files: Iterable[tuple[str, bytes]], *texts: str) -> str:
    """Return a short hash that changes if a file's name, a file's bytes or one of ``texts`` changes."""
    digest = hashlib.sha256()
    for part in (*(part for name, data in files for part in (name.encode(), data)), *(text.encode() for text in texts)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


def write_context(file: IO[bytes], contents: Mapping[str, Path | bytes]) -> None:
    """Write a build context: a tar that is identical for identical contents, so that the engine's build cache works."""
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
    return None if info.name.rpartition("/")[2] in _LEFT_OUT else _make_plain(info)


def _make_plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mtime = 0
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    info.mode = 0o755 if info.isdir() else 0o644
    return info
