"""Small things under the names that code written for smdebug knows; our own code imports them where they are made."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

from smdebug.core.access_layer.utils import check_dir_exists
from smdebug.core.arrays import make_numpy_array
from smdebug.core.claim import Claim
from smdebug.core.error_handling_agent import error_handling_agent
from smdebug.core.locations import (
    COLLECTIONS_DIR,
    deserialize_tf_device,
    parse_worker,
    parse_worker_of_collections_file,
    serialize_tf_device,
)
from smdebug.core.logger import get_logger
from smdebug.core.output import is_s3_path
from smdebug.core.s3 import is_s3
from smdebug.core.simulators import SagemakerSimulator, ScriptSimulator
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugValueError

__all__ = [
    "FRAMEWORK",
    "SagemakerSimulator",
    "ScriptSimulator",
    "check_dir_exists",
    "deserialize_tf_device",
    "ensure_dir",
    "error_handling_agent",
    "get_aws_region_from_processing_job_arn",
    "get_logger",
    "get_path_to_collections",
    "get_worker_name_from_collection_file",
    "is_first_process",
    "is_framework_version_supported",
    "is_s3",
    "make_numpy_array",
    "parse_worker_name_from_file",
    "remove_file_if_exists",
    "serialize_tf_device",
    "setup_profiler_report",
]

# Tests written for smdebug reset it; model parallelism makes no difference here.
_is_using_smmodelparallel: bool | None = None

_PROCESSING_JOB_ARN = re.compile(r"arn:[^:]*:sagemaker:(?P<region>[^:]+):\d*:processing-job/.+")
_claims: dict[str, Claim] = {}


class FRAMEWORK(Enum):
    """The frameworks that hooks exist for."""

    TENSORFLOW = 0
    PYTORCH = 1
    MXNET = 2
    XGBOOST = 3


def is_framework_version_supported(framework_type: FRAMEWORK | None = None) -> bool:  # noqa: ARG001
    """Answer True: no version is turned away, what a hook cannot do fails by itself and says so."""
    return True


def get_path_to_collections(path: str) -> str:
    """Return the folder, or the prefix, of the collections files of the run at `path`."""
    return f"{path.rstrip('/')}/{COLLECTIONS_DIR}"


def get_worker_name_from_collection_file(filename: str) -> str:
    """Return the worker that wrote a collections file; ValueError for a name without one."""
    return parse_worker_of_collections_file(filename)


def parse_worker_name_from_file(filename: str) -> str:
    """Return the worker that wrote an index or event file; ValueError for a name without one."""
    return parse_worker(filename)


def ensure_dir(file_path: str, is_file: bool = True) -> None:
    """Make the folder of a file, or the folder itself where `is_file` is False."""
    folder = Path(file_path).parent if is_file else Path(file_path)
    folder.mkdir(parents=True, exist_ok=True)


def remove_file_if_exists(file_path: str) -> None:
    """Delete a file; nothing happens where there is none."""
    Path(file_path).unlink(missing_ok=True)


def is_first_process(path: str, is_dir: bool = True) -> bool:
    """Tell whether this process is the first that asks for a run, and keep the run for it until it ends; True on S3.

    Args:
        path: of the run; of a file in it where `is_dir` is False.
        is_dir: whether the path is that of the run's folder.
    """
    if is_s3_path(path):
        return True
    folder = os.path.abspath(path if is_dir else Path(path).parent)  # noqa: PTH100 - a key, links stay as they are
    claim = _claims.setdefault(folder, Claim(folder))
    return claim.take()


def get_aws_region_from_processing_job_arn(processing_job_arn: str) -> str:
    """Return the region in a processing job's ARN; SMDebugValueError for a text that is none."""
    found = _PROCESSING_JOB_ARN.fullmatch(processing_job_arn)
    if not found:
        raise SMDebugValueError(f"{processing_job_arn!r} is no ARN of a processing job.")
    return found["region"]


def setup_profiler_report(processing_job_arn: str, opt_out_telemetry: bool = False) -> None:
    """Do nothing: the original tells AWS here that a report was opened, and nothing of ours ever does such a thing."""


def _prepare_telemetry_url(processing_job_arn: str) -> str:
    """Raise SMDebugNotImplementedError: there is no telemetry."""
    raise SMDebugNotImplementedError(f"There is no telemetry, so {processing_job_arn} has no address of it.")
