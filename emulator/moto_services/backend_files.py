"""Files of moto's backends: one for each service, account and region.

Writes are atomic. A file's name is the region and a number. Files are not synced to the disk: acknowledged changes
survive a kill -9, but not a power failure. A damaged file is moved aside and logged; the others are not affected.
"""

import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from emulator.exceptions import StartupError

logger = logging.getLogger(__name__)

_MAGIC = b"smdebug-emulator backend 1 "
_PLACE = re.compile(r"[A-Za-z0-9_-]+")
_SUFFIX = ".state"


class BackendKey(NamedTuple):
    """The key of one file: moto's name of a service, an account, and a region (or partition)."""

    service: str
    account_id: str
    region: str

    def __str__(self) -> str:
        return f"{self.service} of the account {self.account_id} in {self.region}"


class DamagedFileError(Exception):
    """The content of a file differs from what was written."""


class BackendFiles:
    """The folder with the files. Thread safe for different keys."""

    def __init__(self, folder: Path) -> None:
        """Create the folder, if it is missing.

        Raises:
            StartupError: it cannot be written.
        """
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StartupError(f"{folder} cannot be written ({error.strerror}): move it away.") from error

    def list_keys(self) -> Iterator[BackendKey]:
        """Yield the keys that have a file."""
        for folder in sorted(self._folder.glob("*/*")):
            for region in sorted({path.name.partition(".")[0] for path in folder.glob(f"*{_SUFFIX}")}):
                yield BackendKey(folder.parent.name, folder.name, region)

    def read(self, key: BackendKey) -> bytes:
        """Return the content of a file.

        Raises:
            DamagedFileError: it differs from what was written.
            OSError: the file cannot be read.
        """
        header, _, content = self._list_files(key)[-1].read_bytes().partition(b"\n")
        if header != _describe(content):
            raise DamagedFileError("its checksum is wrong" if header.startswith(_MAGIC) else "it is of another version")
        return content

    def write(self, key: BackendKey, content: bytes) -> None:
        """Replace the content of a file.

        Each version has a new number in its name, and the previous one is removed afterwards. If a file were renamed
        over another one, ext4 would write it to the disk at once, which takes milliseconds.

        Raises:
            OSError: for example, the disk is full. The previous content is kept.
        """
        before = self._list_files(key)
        folder = self._find_folder(key)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = folder / f"{key.region}.partial"
        with partial.open("wb") as target:
            target.write(_describe(content) + b"\n")
            target.write(content)
        partial.rename(folder / f"{key.region}.{_read_number(before[-1]) + 1 if before else 1}{_SUFFIX}")
        for path in before:
            path.unlink()

    def remove(self, key: BackendKey) -> None:
        """Remove a key's files, if there are any."""
        for path in self._list_files(key):
            path.unlink()

    def set_aside(self, key: BackendKey, error: Exception) -> None:
        """Move a damaged file away, so that the next change does not overwrite it, and log it in one line."""
        path = self._list_files(key)[-1]
        aside = path.with_suffix(".damaged")
        path.replace(aside)
        logger.error(
            "What moto kept of %s cannot be read (%s: %s): it begins empty. The file is now %s; put a sound copy of it "
            "back as %s while the emulator is stopped, or create the resources again and delete it.",
            key,
            type(error).__name__,
            error,
            aside,
            path.name,
        )

    def _list_files(self, key: BackendKey) -> list[Path]:
        """List the files of ``key``, the latest last. After a kill, the previous version may still exist."""
        return sorted(self._find_folder(key).glob(f"{key.region}.*{_SUFFIX}"), key=_read_number)

    def _find_folder(self, key: BackendKey) -> Path:
        assert is_backend_key(key), key
        return self._folder / key.service / key.account_id


def is_backend_key(key: BackendKey) -> bool:
    """Check whether a key can be a file's name. moto accepts any name, even one that is not a valid path."""
    return all(isinstance(part, str) and _PLACE.fullmatch(part) for part in key)


def _read_number(path: Path) -> int:
    return int(path.name.split(".")[1])


def _describe(content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(content).hexdigest().encode()
