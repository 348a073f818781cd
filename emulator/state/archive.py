"""State archives: export and import of a state folder.

An archive holds what survives a restart, and nothing of the running process.
"""

import io
import json
import re
import shutil
import sqlite3
import tempfile
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from emulator.exceptions import AwsError, ValidationException
from emulator.state.disk import is_disk_full

_FORMAT = {"format": "smdebug-emulator state", "version": 1}
_DESCRIPTION = "state.json"
# The content of an archive: databases of jobs, one per account, and the folders of S3 and moto.
_DATABASES, _FOLDERS = "jobs*.sqlite", ("s3", "moto")
_MEMBER = re.compile(r"state\.json|jobs[^/]*\.sqlite|(s3|moto)(/.*)?", re.DOTALL)
_STAGED, _LAST = "import", "last-import"


def write_archive(state_dir: Path, target: Path) -> None:
    """Write the archive; the objects of S3 and the files of moto must not change in the meantime."""
    import tarfile  # a start of the emulator does not wait for it

    with tempfile.TemporaryDirectory() as scratch, tarfile.open(target, "w") as archive:
        description = json.dumps(_FORMAT).encode()
        member = tarfile.TarInfo(_DESCRIPTION)
        member.size = len(description)
        archive.addfile(member, io.BytesIO(description))
        for path in _find_files(state_dir):
            name = str(path.relative_to(state_dir))
            if path.suffix == ".sqlite":
                copy = Path(scratch) / "copy.sqlite"
                _copy_database(path, copy)
                archive.add(copy, name)
                copy.unlink()
            elif not path.name.endswith((".sqlite-wal", ".sqlite-shm", ".partial")):
                with suppress(FileNotFoundError):  # the body of an upload that has just failed
                    archive.add(path, name)


def measure_archive(state_dir: Path) -> int:
    """Return the approximate size of a state archive in bytes; the archive may be slightly larger."""
    size = 0
    for path in _find_files(state_dir):
        with suppress(FileNotFoundError):  # the body of an upload that has just failed
            size += path.stat().st_size
    return size


def _find_files(state_dir: Path) -> list[Path]:
    below = (path for name in _FOLDERS for path in sorted((state_dir / name).rglob("*")))
    return [*state_dir.glob(_DATABASES), *(path for path in below if path.is_file())]


class StagedImport(NamedTuple):
    """An import whose archive is unpacked, and replaces the state at the next start.

    Attributes:
        name: the name of the import, which ``read_last_import`` returns once it is applied.
        previous: the name of the last applied import; None if there was none.
    """

    name: str
    previous: str | None


def stage_archive(source: Path, state_dir: Path) -> StagedImport:
    """Unpack an archive next to the state that it will replace.

    Only one archive may be unpacked at a time.

    Raises:
        ValidationException: ``source`` is not a state archive, or cannot be unpacked; no files are left behind.
        AwsError: the disk is full; no files are left behind.
    """
    staged = state_dir / _STAGED
    partial = staged.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    name = uuid.uuid4().hex
    try:
        partial.mkdir()
        _unpack(source, partial)
        (partial / _LAST).write_text(name)
        shutil.rmtree(staged, ignore_errors=True)
        partial.rename(staged)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if is_disk_full(error):
            raise AwsError(
                f"There is no space in {state_dir} for the archive's content beside the present state: free some space "
                "there, and import it again.",
                code="InsufficientStorage",
                status=507,
            ) from error
        raise
    return StagedImport(name, read_last_import(state_dir))


def _unpack(source: Path, folder: Path) -> None:
    import tarfile  # a start of the emulator does not wait for it

    try:
        with tarfile.open(source, "r:") as archive:
            for member in archive.getmembers():
                if not _MEMBER.fullmatch(member.name) or ".." in Path(member.name).parts:
                    # It could replace the emulator's keys.
                    raise ValidationException(f"This archive has {member.name}, which is no part of a state.")
            archive.extractall(folder, filter="data")
        described = json.loads((folder / _DESCRIPTION).read_text())
    except (tarfile.TarError, OSError, ValueError) as error:
        if is_disk_full(error):
            raise
        raise ValidationException(
            f"This is not an archive of an emulator's state ({error}): give a file that smdebug-emulator state "
            "export wrote."
        ) from None
    if described != _FORMAT:
        raise ValidationException(f"This archive is of another version: {described}; this emulator has {_FORMAT}.")


def apply_staged(state_dir: Path) -> None:
    """Replace the state by a staged archive, if there is one; after a kill, the next call continues."""
    staged = state_dir / _STAGED
    shutil.rmtree(staged.with_suffix(".partial"), ignore_errors=True)  # of a process that was killed
    if not staged.exists():
        return
    description = staged / _DESCRIPTION
    if description.exists():  # else a kill happened while the parts below were moved
        for name in _FOLDERS:
            shutil.rmtree(state_dir / name, ignore_errors=True)
        # Last: commands that follow events read them.
        for path in state_dir.glob(f"{_DATABASES}*"):
            path.unlink()
        description.unlink()
    for path in staged.iterdir():
        path.replace(state_dir / path.name)
    staged.rmdir()


def discard_staged(state_dir: Path) -> None:
    """Remove a staged archive before it is applied."""
    shutil.rmtree(state_dir / _STAGED)


def read_last_import(state_dir: Path) -> str | None:
    """Return the name of the last applied import; None if there was none."""
    path = state_dir / _LAST
    return path.read_text() if path.exists() else None


def _copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as database, closing(sqlite3.connect(target)) as copy:
        database.backup(copy)
