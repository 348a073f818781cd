"""A job's Python profiles, by step, time or mode."""

import json
import os
import pstats
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from smdebug.logger import get_logger
from smdebug.profiler.analysis.python_stats_reader import LocalPythonStatsReader, S3PythonStatsReader
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import (
    PyinstrumentStepStats,
    StepPythonProfileStats,
    cProfileStats,
)
from smdebug.profiler.profiler_constants import (
    CPROFILE_NAME,
    PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME,
)
from smdebug.profiler.python_profile_utils import PythonProfileModes, StepPhase, python_profile_mode_to_str

_ANY = "any"


class PythonProfileAnalysis(ABC):
    """Common part of all analyses of Python profiles.

    Args:
        local_profile_dir: the folder of the profiles; with s3_path, the local folder to download them to.
        s3_path: the job's `profiler-output` on S3.

    Raises:
        SMDebugValueError: the folder does not exist, or s3_path is not an S3 path.
        ObjectStoreError: S3 refuses or cannot be reached.

    Attributes:
        python_profile_stats: the profiler's profiles, ordered by time and node.
    """

    name = ""

    def __init__(
        self,
        local_profile_dir: str | os.PathLike[str] = "/tmp/python_stats",  # noqa: S108 -- smdebug's default
        s3_path: str | None = None,
    ) -> None:
        self.python_stats_reader: LocalPythonStatsReader | S3PythonStatsReader = (
            S3PythonStatsReader(local_profile_dir, s3_path) if s3_path else LocalPythonStatsReader(local_profile_dir)
        )
        self._refresh(refresh=True)

    def fetch_profile_stats_by_step(
        self,
        start_step: float,
        end_step: float | None = None,
        mode: PythonProfileModes = PythonProfileModes.TRAIN,
        start_phase: StepPhase = StepPhase.STEP_START,
        end_phase: StepPhase = StepPhase.STEP_END,
        node_id: str = _ANY,
        refresh_stats: bool = True,
    ) -> Any:
        """Return the statistics of the profiles between a phase of one step and a phase of another.

        Args:
            start_step: the first step.
            end_step: the last step; None: the first one.
            mode: GLOBAL for PyTorch's profiles; TRAIN, EVAL or PREDICT for TensorFlow's.
            start_phase: phase of the first step.
            end_phase: phase of the last step. What lasts until the next step begins needs that step as the last one.
            node_id: the process; "any": the first one found.
            refresh_stats: whether to check for new profiles.
        """
        last = start_step if end_step is None else end_step
        return self._fetch(
            lambda each: (
                each.in_step_interval(start_step, last, start_phase, end_phase)
                and each.has_start_and_end_mode(mode, mode)
            ),
            node_id,
            refresh=refresh_stats,
        )

    def fetch_profile_stats_by_time(
        self,
        start_time_since_epoch_in_secs: float,
        end_time_since_epoch_in_secs: float,
        node_id: str = _ANY,
        refresh_stats: bool = True,
    ) -> Any:
        """Return the statistics of the profiles that overlap a time interval."""
        span = start_time_since_epoch_in_secs * 1e6, end_time_since_epoch_in_secs * 1e6
        return self._fetch(lambda each: each.in_time_interval(*span), node_id, refresh=refresh_stats)

    def fetch_profile_stats_between_modes(
        self,
        start_mode: PythonProfileModes,
        end_mode: PythonProfileModes,
        node_id: str = _ANY,
        refresh_stats: bool = True,
    ) -> Any:
        """Return the statistics of the profiles that began in one mode and ended in another."""
        return self._fetch(
            lambda each: each.has_start_and_end_mode(start_mode, end_mode), node_id, refresh=refresh_stats
        )

    def fetch_pre_step_zero_profile_stats(self, node_id: str = _ANY, refresh_stats: bool = True) -> Any:
        """Return the statistics of the profiles before the first step."""
        return self._fetch(StepPythonProfileStats.has_pre_step_zero_profile_stats, node_id, refresh=refresh_stats)

    def fetch_post_hook_close_profile_stats(self, node_id: str = _ANY, refresh_stats: bool = True) -> Any:
        """Return the statistics of the profiles after the hook was closed."""
        return self._fetch(StepPythonProfileStats.has_post_hook_close_profile_stats, node_id, refresh=refresh_stats)

    def list_profile_stats(self, refresh_stats: bool = True) -> pd.DataFrame:
        """Return a row for each file: profiler, framework, node, begin and end, and the local path."""
        self._refresh(refresh=refresh_stats)
        frame = pd.DataFrame([vars(each) for each in self.python_profile_stats])
        for column in ("start_mode", "end_mode") if len(frame) else ():
            frame[column] = [python_profile_mode_to_str(PythonProfileModes(mode)) for mode in frame[column]]
        return frame

    def list_available_node_ids(self, refresh_stats: bool = True) -> list[str]:
        """Return the processes that have profiles."""
        self._refresh(refresh=refresh_stats)
        return sorted({each.node_id for each in self.python_profile_stats})

    def _refresh(self, *, refresh: bool) -> None:
        if refresh:
            found = self.python_stats_reader.load_python_profile_stats()
            self.python_profile_stats = [each for each in found if each.profiler_name == self.name]

    def _fetch(self, wanted: Callable[[StepPythonProfileStats], bool], node_id: str, *, refresh: bool) -> Any:
        self._refresh(refresh=refresh)
        known = self.python_profile_stats
        node = known[0].node_id if node_id == _ANY and known else node_id
        found = [each for each in known if each.node_id == node and wanted(each)]
        if not found:
            get_logger().warning("There is no Python profile of what was asked for.")
            return None
        return self._aggregate(found)

    @abstractmethod
    def _aggregate(self, found: list[StepPythonProfileStats]) -> Any:
        """Combine the profiles found, in the form specific to the analysis."""


class cProfileAnalysis(PythonProfileAnalysis):  # noqa: N801 -- smdebug's name
    """Profiles of cProfile; results are a `cProfileStats` that combines all profiles found, or None without any."""

    name = CPROFILE_NAME

    def fetch_profile_stats_by_training_phase(
        self, node_id: str = _ANY, refresh_stats: bool = True
    ) -> dict[tuple[PythonProfileModes, PythonProfileModes], cProfileStats]:
        """Return statistics by the modes in which the profiles began and ended."""
        self._refresh(refresh=refresh_stats)
        pairs = dict.fromkeys((each.start_mode, each.end_mode) for each in self.python_profile_stats)
        found = {pair: self.fetch_profile_stats_between_modes(*pair, node_id, refresh_stats=False) for pair in pairs}
        return {pair: stats for pair, stats in found.items() if stats is not None}

    def fetch_profile_stats_by_job_phase(
        self, node_id: str = _ANY, refresh_stats: bool = True
    ) -> dict[str, cProfileStats]:
        """Return statistics by `initialization`, `training_loop` and `finalization`, as far as there are profiles.

        By phases: as upstream names the profile after a hook's close, its mode is that of the initialization, which
        upstream itself then takes for the other.
        """

        def name(each: StepPythonProfileStats) -> str:
            if each.has_pre_step_zero_profile_stats():
                return "initialization"
            return "finalization" if each.has_post_hook_close_profile_stats() else "training_loop"

        self._refresh(refresh=refresh_stats)
        found = {}
        for part in dict.fromkeys(map(name, self.python_profile_stats)):
            stats = self._fetch(lambda each: name(each) == part, node_id, refresh=False)  # noqa: B023 -- called at once
            if stats is not None:
                found[part] = stats
        return found

    def _aggregate(self, found: list[StepPythonProfileStats]) -> cProfileStats | None:
        total: pstats.Stats | None = None
        for each in found:
            try:
                stats = pstats.Stats(each.stats_path)
            except (OSError, EOFError, ValueError, TypeError, AttributeError, KeyError):
                get_logger().warning("The Python profile %s is damaged and is skipped.", each.stats_path)
                continue
            total = stats if total is None else total.add(stats)
        return None if total is None else cProfileStats(total)


class PyinstrumentAnalysis(PythonProfileAnalysis):
    """Profiles of pyinstrument; results are a list of `PyinstrumentStepStats`, or None without any profile."""

    name = PYINSTRUMENT_NAME

    def _aggregate(self, found: list[StepPythonProfileStats]) -> list[PyinstrumentStepStats] | None:
        stats = []
        for each in found:
            path = Path(each.stats_path)
            if path.name != PYINSTRUMENT_JSON_FILENAME:
                continue
            page = path.with_name(PYINSTRUMENT_HTML_FILENAME)
            try:
                content = json.loads(path.read_bytes())
            except (OSError, ValueError, RecursionError):
                get_logger().warning("The Python profile %s is damaged and is skipped.", path)
                continue
            stats.append(PyinstrumentStepStats(str(page) if page.is_file() else None, content))
        return stats or None
