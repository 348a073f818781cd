"""State of a run: its end-of-job file, folder checks, and deletion from S3."""

import os
import time
from pathlib import Path

from smdebug.compatibility.s3_handler import DeleteRequest, S3Handler
from smdebug.exceptions import SMDebugValueError
from smdebug.format.locations import END_OF_JOB_FILE
from smdebug.storage.output import path_exists, write_whole_file
from smdebug.storage.s3 import get_path_text, is_s3
from smdebug.writing.run_writer import check_out_dir
from smdebug.writing.run_writer import check_out_dir as verify_and_get_out_dir

__all__ = [
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "ENV_RULE_STOP_SIGNAL_FILENAME",
    "check_dir_exists",
    "delete_s3_prefixes",
    "has_training_ended",
    "is_rule_signalled_gracetime_passed",
    "is_s3",
    "training_has_ended",
    "verify_and_get_out_dir",
]

# Seconds that a job continues after a rule has signalled it to stop.
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
ENV_RULE_STOP_GRACE_TIME = "rule_stop_grace_time_secs"


def has_training_ended(trial_prefix: str | os.PathLike[str]) -> bool:
    """Whether the run at a folder or `s3://` prefix has its end-of-job file."""
    return path_exists(f"{get_path_text(trial_prefix).rstrip('/')}/{END_OF_JOB_FILE}")


def training_has_ended(trial_prefix: str | os.PathLike[str]) -> None:
    """Write the end-of-job file of a run: readers load no data that is written after it."""
    write_whole_file(f"{get_path_text(trial_prefix).rstrip('/')}/{END_OF_JOB_FILE}", [])


def check_dir_exists(path: str | os.PathLike[str]) -> None:
    """Check that the run at this path has not ended; otherwise raise SMDebugRuntimeError, which says what to do."""
    check_out_dir(path)


def delete_s3_prefixes(bucket: str, keys: str | list[str]) -> None:
    """Delete all objects of a bucket whose keys begin with one of the given texts.

    Raises:
        SMDebugValueError: a text is empty, which would match all objects.
    """
    prefixes = [keys] if isinstance(keys, str) else list(keys)
    if not all(prefixes):
        raise SMDebugValueError(f"An empty prefix would delete everything in {bucket}: name what is to go.")
    S3Handler.delete_prefixes([DeleteRequest(bucket, prefix) for prefix in prefixes])


def is_rule_signalled_gracetime_passed(trial_prefix: str | os.PathLike[str]) -> bool:
    """Whether a rule has signalled the job to stop, and the grace period after that has passed.

    The signal is a file in the run, named by SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE. It contains the time of the signal in
    seconds since the epoch. The environment's rule_stop_grace_time_secs is the grace period in seconds, 60 by default.

    Raises:
        SMDebugValueError: the file or the environment variable contains no number.
    """
    name = os.environ.get(ENV_RULE_STOP_SIGNAL_FILENAME)
    if not name:
        return False
    path = Path(trial_prefix) / name
    if not path.is_file():
        return False
    grace = os.environ.get(ENV_RULE_STOP_GRACE_TIME, DEFAULT_GRACETIME_FOR_RULE_STOP_SEC)
    try:
        return time.time() > float(path.read_text(encoding="utf-8")) + float(grace)
    except ValueError as error:
        raise SMDebugValueError(f"{path} or {ENV_RULE_STOP_GRACE_TIME} holds no number of seconds: {error}.") from error
