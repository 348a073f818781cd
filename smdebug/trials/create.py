"""Opening of trials by path."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, overload

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.profiler_trial import ProfilerTrial
from smdebug.reading.run_files import LocalRunFiles, RunFiles
from smdebug.reading.run_steps import DEFAULT_POLL_INTERVAL_S
from smdebug.storage.exported_job import refuse_exported_job
from smdebug.storage.s3 import S3RunFiles, get_path_text, is_s3
from smdebug.trials.local_trial import LocalTrial
from smdebug.trials.s3_trial import S3Trial
from smdebug.trials.trial import Trial


@overload
def create_trial(
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    profiler: Literal[False] = False,
    output_dir: str = ...,
    *,
    out_dir: str | os.PathLike[str] | None = None,
    range_steps: Sequence[int | None] | None = None,
    check: bool = False,
    index_mode: bool = True,
    cache: bool = False,
    parallel: bool = True,
    poll_interval_s: float = ...,
) -> Trial: ...


@overload
def create_trial(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    profiler: Literal[True],
    output_dir: str = ...,
    poll_interval_s: float = ...,
) -> ProfilerTrial: ...


def create_trial(
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "/opt/ml/processing/outputs/",
    *,
    out_dir: str | os.PathLike[str] | None = None,
    range_steps: Sequence[int | None] | None = None,
    check: bool = False,  # noqa: ARG001 -- smdebug's signature; checksums are always verified
    index_mode: bool = True,  # noqa: ARG001 -- smdebug's signature
    cache: bool = False,
    parallel: bool = True,  # noqa: ARG001 -- smdebug's signature
    poll_interval_s: float = DEFAULT_POLL_INTERVAL_S,
) -> Trial | ProfilerTrial:
    """Open a run, finished or still being written, or a job's profile.

    Args:
        path: a local folder, or `s3://bucket/prefix`, that contains the folders collections, events and index.
        name: the trial's name; the last component of the path by default.
        profiler: whether the path is the `profiler-output` of a job; then a trial for profiler rules is returned.
        output_dir: where such a rule writes its output; created if needed.
        out_dir: another name of `path`.
        range_steps: (begin, end) in global steps, None for open. Only steps in [begin, end) are read.
        check: without effect: checksums are always verified.
        index_mode: without effect: a run is always read by its index.
        cache: keep values in memory.
        parallel: without effect.
        poll_interval_s: seconds between two refreshes while waiting for steps.

    Raises:
        MissingCollectionFiles: the job has ended without writing its collections files.
        SMDebugValueError: not exactly one path is given, or it is empty, has no bucket or is that of an exported
            job.
        NoMoreProfilerData: a profiled job has ended without any data.
        OSError: output_dir cannot be created.
        SMDebugError: S3 cannot be read.
    """
    given = [text for each in (path, out_dir) if each is not None and (text := get_path_text(each).strip())]
    if len(given) != 1:
        raise SMDebugValueError("create_trial needs the path of one run: a folder, or s3://bucket/prefix.")
    (path,) = given
    if profiler:
        return ProfilerTrial(name, path, output_dir, poll_interval_s=poll_interval_s)
    on_s3, bucket, prefix = is_s3(path)
    if on_s3:
        if name is None:
            name = path.rpartition("/")[2]
        return S3Trial(name, bucket, prefix, range_steps, cache=cache, poll_interval_s=poll_interval_s)
    refuse_exported_job(path, "run", "debug-output")
    return LocalTrial(name, path, range_steps, cache=cache, poll_interval_s=poll_interval_s)


def open_files(path: str | os.PathLike[str]) -> RunFiles:
    """Return the files of a run by its path, without waiting for any; arguments and errors as in `create_trial`."""
    path = get_path_text(path).strip()
    if is_s3(path)[0]:
        return S3RunFiles(path)
    refuse_exported_job(path, "run", "debug-output")
    return LocalRunFiles(Path(path).expanduser())
