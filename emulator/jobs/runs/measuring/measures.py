"""System metrics files of one host, one for each minute, named as AWS's."""

import errno
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from emulator.jobs.runs.measuring.machine import Figure
from emulator.jobs.uploads.live import UNFINISHED


class MinuteFiles:
    """The files of one host. The name of a file ends with ``UNFINISHED`` until its minute is over."""

    def __init__(self, folder: Path, host: str) -> None:
        """Prepare to write, and finish the files that an earlier process left behind.

        Args:
            folder: the local folder that is uploaded as ``profiler-output``.
            host: name of the host, such as algo-1. It is part of the file names and of each line.
        """
        self._folder = folder / "system" / "incremental"
        self._host = host
        self._path: Path | None = None
        self._minute = -1
        self._file: BinaryIO | None = None
        finish_measures(folder, host)

    def append(self, figures: Iterable[Figure], timestamp: float) -> None:
        """Write figures, all or none.

        Args:
            figures: the figures.
            timestamp: time of the measurement in epoch seconds.

        Raises:
            OSError: the figures were not written, for example because the disk is full.
        """
        minute = int(timestamp) // 60 * 60
        if minute != self._minute or self._file is None:
            self.close()
            hour = time.strftime("%Y%m%d%H", time.gmtime(minute))
            path = self._folder / hour / f"{minute:010d}.{self._host}.json"
            self._file, self._path, self._minute = _open(path), path, minute
        lines = [json.dumps(self._describe(figure, timestamp)) for figure in figures]
        content, size = ("\n".join(lines) + "\n").encode(), self._file.seek(0, os.SEEK_END)
        # If there is not enough space, a part is written, and no error is raised.
        if self._file.write(content) < len(content):
            self._file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def close(self) -> None:
        """Finish the current file, so that it is uploaded."""
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
    """Open the file of a minute. An existing file is continued: the clock was set back, or profiling restarted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + UNFINISHED)
    with suppress(FileNotFoundError):
        path.rename(unfinished)
    return unfinished.open("ab", buffering=0)


def finish_measures(folder: Path, host: str = "*") -> None:
    """Finish the files that a killed process left behind in the middle of a minute, so that they are uploaded."""
    for left in folder.glob(f"system/incremental/*/*.{host}.json{UNFINISHED}"):
        _finish(left)


def _finish(unfinished: Path) -> None:
    """Remove an incomplete last line, and give the file its final name; delete the file if no line is complete."""
    content = unfinished.read_bytes()
    whole = content.rpartition(b"\n")[0]
    if not whole:
        unfinished.unlink()
        return
    if len(whole) + 1 < len(content):
        os.truncate(unfinished, len(whole) + 1)
    unfinished.rename(unfinished.with_name(unfinished.name.removesuffix(UNFINISHED)))
