"""Runs written by the real smdebug 1.0.34, unpacked from their archive.

See README.md.
"""

import json
import tarfile
from functools import cache
from pathlib import Path, PurePath
from typing import Any

ARCHIVE = Path(__file__).with_name("recorded_runs.tar.xz")


@cache
def read_answers() -> dict[str, Any]:
    """What upstream answered of each run, by the run's name; unpacks nothing, so tests can be named by it."""
    with tarfile.open(ARCHIVE) as archive:
        found = [(PurePath(member.name), member) for member in archive if member.name.endswith("/expected.json")]
        files = [(path, archive.extractfile(member)) for path, member in found]
        return {path.parts[0]: json.load(file) for path, file in files if file}


def unpack_recorded_runs(folder: Path) -> Path:
    """Unpack `<run's name>/run` and what stands beside it; return the folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
