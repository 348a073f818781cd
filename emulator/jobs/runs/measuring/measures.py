"""System metrics files of one host, one for each minute, named as AWS's."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from emulator.jobs.uploads.live import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from emulator.jobs.runs.measuring.machine import Figure


class MinuteFiles:
    """The files of one host. A file bears ``UNFINISHED`` behind its name until its minute is over."""

    def __init__(self, folder: Path, host: str) -> None:
        """Prepare to write.

        Args:
            folder: what stands for ``profiler-output`` in S3.
            host: such as algo-1; names the files, and each line in them.
        """
        self._folder = folder / "system" / "incremental"
        self._host = host
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        finish_measures(folder, host)

    def append(self, figures: Iterable[Figure], timestamp: float) -> None:
        """Write figures that were measured at an epoch time in seconds.

        Raises:
            OSError: the disk is full, say; nothing of them is written.
        """
        minute = int(timestamp) // 60 * 60
        hour = time.strftime("%Y%m%d%H", time.gmtime(minute))
        path = self._folder / hour / f"{minute:010d}.{self._host}.json"
        if path != self._path or self._file is None:
            self.close()
            self._file, self._path = _open(path), path
        lines = [json.dumps(self._describe(figure, timestamp), separators=(", ", ": ")) for figure in figures]
        content, size = ("\n".join(lines) + "\n").encode(), self._file.seek(0, os.SEEK_END)
        # Where no room is left for all of it, a part is written without an error.
        if self._file.write(content) < len(content):
            self._file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def close(self) -> None:
        """Let the file of the last minute be uploaded as it is."""
        if self._file is not None and self._path is not None:
            self._file.close()
            self._file = None
            _finish(self._path.with_name(self._path.name + UNFINISHED))

    def _describe(self, figure: Figure, timestamp: float) -> dict[str, Any]:
        return {
            "Type": figure.type,
            "Name": figure.name,
            "Dimension": figure.dimension,
            "Value": round(figure.value, 4),
            "NodeId": self._host,
            "Timestamp": round(timestamp, 6),
        }


def _open(path: Path) -> BinaryIO:
    """Open the file of a minute. Where there is one, it goes on: the clock was set back, or profiling began again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + UNFINISHED)
    with suppress(FileNotFoundError):
        path.rename(unfinished)
    return unfinished.open("ab", buffering=0)


def finish_measures(folder: Path, host: str = "*") -> None:
    """Let files be uploaded as they are that a killed process left in the middle of their minute."""
    for left in folder.glob(f"system/incremental/*/*.{host}.json{UNFINISHED}"):
        _finish(left)


def _finish(unfinished: Path) -> None:
    """Give a file the name of a whole one, without the line in it that was cut."""
    content = unfinished.read_bytes()
    whole = content.rpartition(b"\n")[0]
    if not whole:
        unfinished.unlink()
        return
    if len(whole) + 1 < len(content):
        os.truncate(unfinished, len(whole) + 1)
    unfinished.rename(unfinished.with_name(unfinished.name.removesuffix(UNFINISHED)))
