"""Readers of the list of a job's Python profiles, from a folder or S3."""

import os
from pathlib import Path

from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import StepPythonProfileStats
from smdebug.profiler.profiler_constants import (
    CPROFILE_NAME,
    CPROFILE_STATS_FILENAME,
    PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME,
)
from smdebug.storage.s3 import S3Objects, get_path_text

_PROFILERS = {
    CPROFILE_STATS_FILENAME: CPROFILE_NAME,
    PYINSTRUMENT_JSON_FILENAME: PYINSTRUMENT_NAME,
    PYINSTRUMENT_HTML_FILENAME: PYINSTRUMENT_NAME,
}


class LocalPythonStatsReader:
    """Lists the profiles below a folder, `<node>/<from>_<to>/<file>`, or below a parent of such folders.

    Raises:
        SMDebugValueError: the folder does not exist.
    """

    def __init__(self, profile_dir: str | os.PathLike[str]) -> None:
        self.profile_dir = get_path_text(profile_dir)
        if not Path(self.profile_dir).is_dir():
            raise SMDebugValueError(f"There is no folder {self.profile_dir} with Python profiles.")

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return the current profiles, ordered by time and node; files and folders with other names are skipped."""
        return _list_profiles(Path(self.profile_dir))


class S3PythonStatsReader:
    """Downloads the profiles of a job into the subfolder `python_stats` of a local folder.

    Args:
        profile_dir: a local folder.
        s3_path: the job's `profiler-output`.

    Raises:
        SMDebugValueError: the folder does not exist, or s3_path is not an S3 path.
    """

    def __init__(self, profile_dir: str | os.PathLike[str], s3_path: str) -> None:
        folder = LocalPythonStatsReader(profile_dir).profile_dir
        self.profile_dir = str(Path(folder, "python_stats"))
        self._objects = S3Objects(s3_path)
        self._sizes: dict[str, int] = {}

    def load_python_profile_stats(self) -> list[StepPythonProfileStats]:
        """Return the current profiles, ordered by time and node; a file is downloaded only once.

        Raises:
            ObjectStoreError: S3 refuses or cannot be reached.
        """
        root = Path(self.profile_dir).resolve()
        root.mkdir(parents=True, exist_ok=True)
        for name, size in self._objects.list_sizes("/framework/").items():
            place = (root / name.lstrip("/")).resolve()
            if place.name not in _PROFILERS or not place.is_relative_to(root) or self._sizes.get(name) == size:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self._objects.get(name))
            self._sizes[name] = size
        return _list_profiles(root)


def _list_profiles(folder: Path) -> list[StepPythonProfileStats]:
    found = []
    for path in sorted(folder.rglob("python_stats*")):
        if path.name not in _PROFILERS or not path.is_file():
            continue
        # <framework>/<profiler>/<node>/<from>_<to>/<file>
        _, framework, _, node, times, _ = ("", "", "", *path.absolute().parts)[-6:]
        try:
            found.append(StepPythonProfileStats(framework, _PROFILERS[path.name], node, times, str(path)))
        except (ValueError, KeyError):
            get_logger().info("%s is not a folder of a Python profile and is skipped.", path.parent)
    return sorted(found, key=lambda each: (each.start_time_since_epoch_in_micros, each.node_id))
