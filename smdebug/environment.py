"""Environment variables and files that configure a run, with defaults."""

import math
import os

from smdebug.exceptions import SMDebugValueError

CONFIG_FILE_PATH_ENV_STR = "SMDEBUG_CONFIG_FILE_PATH"
DEFAULT_SAGEMAKER_CONFIG_FILE = "/opt/ml/input/config/debughookconfig.json"
DEFAULT_SAGEMAKER_OUTDIR = "/opt/ml/output/tensors"

TENSORBOARD_CONFIG_FILE_PATH_ENV_STR = "TENSORBOARD_CONFIG_FILE_PATH"
DEFAULT_SAGEMAKER_TENSORBOARD_CONFIG_FILE = "/opt/ml/input/config/tensorboardoutputconfig.json"
DEFAULT_SAGEMAKER_TENSORBOARD_PATH = "/opt/ml/output/tensorboard"

CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR = "CHECKPOINT_CONFIG_FILE_PATH"
DEFAULT_CHECKPOINT_CONFIG_FILE = "/opt/ml/input/config/checkpointconfig.json"

PROFILER_CONFIG_PATH_ENV_STR = "SMPROFILER_CONFIG_PATH"
DEFAULT_SAGEMAKER_PROFILER_CONFIG_FILE = "/opt/ml/input/config/profilerconfig.json"
DEFAULT_SAGEMAKER_PROFILER_FOLDER = "/opt/ml/output/profiler"

# If it is set, SageMaker runs the job.
TRAINING_JOB_NAME_ENV_STR = "TRAINING_JOB_NAME"
USE_SMDEBUG_ENV_STR = "USE_SMDEBUG"

DEFAULT_WORKER_NAME = "worker_0"
DEFAULT_COLLECTIONS_FILE_NAME = "worker_0_collections.json"
DEFAULT_SAGEMAKER_METRICS_PATH = "SAGEMAKER_METRICS_DIRECTORY"

# Contains the current host of a job with several; the host's name is part of the file names that a node writes.
DEFAULT_RESOURCE_CONFIG_FILE = "/opt/ml/input/config/resourceconfig.json"

# Names of upstream's profiler, which is not part of this library, and of its telemetry, which does not exist here.
PAPERMILL_EXECUTION_ENV_VAR = "PAPERMILL_EXECUTION"
PROFILER_REPORT_VERSION = "profiler_report_v1"
PROFILER_TELEMETRY_URL = ""

LOG_LEVEL_ENV_STR = "SMDEBUG_LOG_LEVEL"
LOG_PATH_ENV_STR = "SMDEBUG_LOG_PATH"
LOG_ALL_TO_STDOUT_ENV_STR = "SMDEBUG_LOG_ALL_TO_STDOUT"
LOG_CONTEXT_ENV_STR = "SMDEBUG_LOG_CONTEXT"
LOG_DUPLICATION_THRESHOLD = 3

# File that reports warnings for the job's users to the service.
WARNINGS_PATH_ENV_STR = "SMDEBUG_WARNINGS_PATH"

INCOMPLETE_STEP_WAIT_WINDOW_KEY = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
MISSING_EVENT_FILE_RETRY_LIMIT_KEY = "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"
TRAINING_END_DELAY_REFRESH_KEY = "SMDEBUG_TRAINING_END_DELAY_REFRESH"
# Seconds during which a reader retries while S3's endpoint does not respond; 0 by default.
S3_OUTAGE_WAIT_KEY = "SMDEBUG_S3_OUTAGE_WAIT"


def read_number(variable: str, default: float) -> float:
    """Return the number in an environment variable, or the default if the variable is unset.

    Raises:
        SMDebugValueError: the value is not a finite number.
    """
    text = os.environ.get(variable)
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SMDebugValueError(f"{variable} must be a number, not {text!r}; unset, it is {default:g}.")
    return number


def is_sagemaker_job() -> bool:
    """Return whether this process belongs to a SageMaker training job: TRAINING_JOB_NAME is set."""
    return TRAINING_JOB_NAME_ENV_STR in os.environ


def is_switched_on() -> bool:
    """Return whether smdebug is switched on: USE_SMDEBUG is unset or true.

    Raises:
        ValueError: the value means neither on nor off.
    """
    try:
        return parse_switch(os.environ.get(USE_SMDEBUG_ENV_STR, "true"))
    except ValueError as error:
        raise ValueError(f"{USE_SMDEBUG_ENV_STR}: {error}") from error


def parse_switch(text: str) -> bool:
    """Parse a switch: yes, true, on or 1, or their opposites; raises ValueError for other text."""
    word = text.strip().lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"{text!r} is neither on nor off: write true or false.")
