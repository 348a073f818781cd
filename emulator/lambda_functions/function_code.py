"""Extraction of a function's zip, confined to its folder."""

import io
import lzma
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from emulator.exceptions import UnsafeZipError

# Lambda's limit for an unpacked function with its layers.
MAX_UNPACKED_BYTES = 250 * 1024 * 1024


def extract_zip(content: bytes, folder: Path, limit: int = MAX_UNPACKED_BYTES) -> int:
    """Unpack a zip into ``folder``, which is created, and return the number of bytes written.

    Files are readable by all users, because a container may run them as another user. Execute bits are kept.

    Raises:
        UnsafeZipError: it is not a zip file, an entry is outside the folder or is a link, or it has more than ``limit``
            bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            written = 0
            for entry in archive.infolist():
                written += _extract_entry(archive, entry, folder, limit - written)
            return written
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error, lzma.LZMAError) as error:
        # zipfile raises RuntimeError for an encrypted entry and NotImplementedError for an unknown compression.
        raise UnsafeZipError(f"The function's code is not a zip file that can be unpacked: {error}") from error


def _extract_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, max_bytes: int) -> int:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or (name.parts and ":" in name.parts[0]):
        raise UnsafeZipError(f"The entry {entry.filename!r} points outside the zip: rename it.")
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        raise UnsafeZipError(f"The entry {entry.filename!r} is a symbolic link: put the file itself into the zip.")
    target = folder.joinpath(*name.parts)
    if entry.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return 0
    if entry.file_size > max_bytes:
        raise UnsafeZipError(f"Unpacked, the code is larger than {MAX_UNPACKED_BYTES} bytes: leave something out.")
    target.parent.mkdir(parents=True, exist_ok=True)
    # zipfile reads at most the size that is in the zip's directory, so the check above also limits the written size.
    with archive.open(entry) as source:
        content = source.read()
    target.write_bytes(content)
    target.chmod(0o755 if mode & 0o111 else 0o644)
    return len(content)
