"""Single functions that only code written for smdebug imports."""

import os
import re
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.compatibility.error_handling_agent import error_handling_agent
from smdebug.compatibility.run_state import check_dir_exists
from smdebug.compatibility.simulators import SagemakerSimulator, ScriptSimulator
from smdebug.environment import is_switched_on
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugTypeError, SMDebugValueError
from smdebug.format.arguments import make_numpy_array
from smdebug.format.locations import (
    COLLECTIONS_DIR,
    deserialize_tf_device,
    parse_worker,
    parse_worker_of_collections_file,
    serialize_tf_device,
)
from smdebug.format.tfevent.data_types import DATA_TYPE_NUMBERS
from smdebug.logger import get_logger
from smdebug.storage.output import is_s3_path
from smdebug.storage.s3 import get_path_text, is_s3
from smdebug.writing.claim import Claim

__all__ = [
    "FRAMEWORK",
    "ConfigValidator",
    "SagemakerSimulator",
    "ScriptSimulator",
    "TimelineFileWriter",
    "check_dir_exists",
    "deserialize_tf_device",
    "ensure_dir",
    "error_handling_agent",
    "get_aws_region_from_processing_job_arn",
    "get_config_validator",
    "get_logger",
    "get_path_to_collections",
    "get_worker_name_from_collection_file",
    "is_first_process",
    "is_framework_version_supported",
    "is_s3",
    "make_numpy_array",
    "parse_worker_name_from_file",
    "remove_file_if_exists",
    "reset_config_validator",
    "serialize_tf_device",
    "setup_profiler_report",
]

# Tests written for smdebug reset it; model parallelism changes nothing here.
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
    """Return True: no version is rejected; a hook that cannot do something logs an error about that."""
    return True


def get_path_to_collections(path: str | os.PathLike[str]) -> str:
    """Return the folder or prefix of the collections files of the run at `path`."""
    return f"{get_path_text(path).rstrip('/')}/{COLLECTIONS_DIR}"


def get_worker_name_from_collection_file(filename: str) -> str:
    """Return the worker that wrote a collections file; raises ValueError for a name without one."""
    return parse_worker_of_collections_file(filename)


def parse_worker_name_from_file(filename: str) -> str:
    """Return the worker that wrote an index or event file; raises ValueError for a name without one."""
    return parse_worker(filename)


def ensure_dir(file_path: str | os.PathLike[str], is_file: bool = True) -> None:
    """Create the folder of a file, or the folder itself if `is_file` is False."""
    folder = Path(file_path).parent if is_file else Path(file_path)
    folder.mkdir(parents=True, exist_ok=True)


def remove_file_if_exists(file_path: str | os.PathLike[str]) -> None:
    """Delete a file if it exists."""
    Path(file_path).unlink(missing_ok=True)


def is_first_process(path: str | os.PathLike[str], is_dir: bool = True) -> bool:
    """Whether this process is the first to claim a run; it then holds the claim until it ends. Always True on S3.

    Args:
        path: path of the run, or of a file in it if `is_dir` is False.
        is_dir: whether the path is the run's folder.
    """
    path = get_path_text(path)
    if is_s3_path(path):
        return True
    folder = os.path.abspath(path if is_dir else Path(path).parent)  # noqa: PTH100 - a key, links stay as they are
    claim = _claims.setdefault(folder, Claim(folder))
    return claim.take()


def get_aws_region_from_processing_job_arn(processing_job_arn: str) -> str:
    """Return the region in a processing job's ARN; raises SMDebugValueError for any other text."""
    found = _PROCESSING_JOB_ARN.fullmatch(processing_job_arn)
    if not found:
        raise SMDebugValueError(f"{processing_job_arn!r} is not an ARN of a processing job.")
    return found["region"]


def setup_profiler_report(processing_job_arn: str, opt_out_telemetry: bool = False) -> None:
    """Do nothing: upstream reports to AWS here that a report was opened, and this package never does that."""


def _prepare_telemetry_url(processing_job_arn: str) -> str:
    """Raise SMDebugNotImplementedError: there is no telemetry."""
    raise SMDebugNotImplementedError(f"There is no telemetry, so {processing_job_arn} has no address of it.")


class ConfigValidator:
    """Reads the environment at each call, and never disables hooks by itself."""

    def __init__(self, framework: object = None) -> None:
        """Store the framework's name for callers that read it; every version is supported."""
        self.framework = framework

    def validate_training_job(self) -> bool:
        """Whether hooks may be created; raises ValueError if USE_SMDEBUG is neither on nor off."""
        return is_switched_on()


_validator: ConfigValidator | None = None


def get_config_validator(framework: object = None) -> ConfigValidator:
    """Return this process's validator."""
    global _validator
    if _validator is None:
        _validator = ConfigValidator(framework)
    return _validator


def reset_config_validator() -> None:
    """Discard this process's validator."""
    global _validator
    _validator = None


# Names of TensorFlow's DataTypes for the numpy types whose names differ in more than case.
_NAMES = {"float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE"}


def _get_proto_dtype(npdtype: np.dtype[Any]) -> tuple[bool, str]:
    """Return whether the type is numeric, and the name of its DataType, such as `DT_FLOAT`.

    Raises:
        SMDebugTypeError: records cannot hold the type.
    """
    dtype = np.dtype(npdtype)
    if dtype.kind == "U":
        return False, "DT_STRING"
    if dtype.name not in DATA_TYPE_NUMBERS:
        raise SMDebugTypeError(f"A record holds no {dtype.name}: convert it to a number type first.")
    return True, _NAMES.get(dtype.name, f"DT_{dtype.name.upper()}")


class TimelineFileWriter:
    """Stands for upstream's writer of trace events, which is not available."""

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        """Raise SMDebugNotImplementedError: hooks write the trace events of a profiled job themselves."""
        raise SMDebugNotImplementedError(
            "TimelineFileWriter is not available: the hook of a profiled job writes its trace events."
        )
