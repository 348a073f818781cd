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

# Its presence is how the library knows that SageMaker runs the job.
TRAINING_JOB_NAME_ENV_STR = "TRAINING_JOB_NAME"
USE_SMDEBUG_ENV_STR = "USE_SMDEBUG"

DEFAULT_WORKER_NAME = "worker_0"
DEFAULT_COLLECTIONS_FILE_NAME = "worker_0_collections.json"
DEFAULT_SAGEMAKER_METRICS_PATH = "SAGEMAKER_METRICS_DIRECTORY"

# Current host of a job of several: part of the names of what a node writes.
DEFAULT_RESOURCE_CONFIG_FILE = "/opt/ml/input/config/resourceconfig.json"

# Names of the profiler, which is no part of this library, and of its report's telemetry, of which there is none.
PAPERMILL_EXECUTION_ENV_VAR = "PAPERMILL_EXECUTION"
PROFILER_REPORT_VERSION = "profiler_report_v1"
PROFILER_TELEMETRY_URL = ""

LOG_LEVEL_ENV_STR = "SMDEBUG_LOG_LEVEL"
LOG_PATH_ENV_STR = "SMDEBUG_LOG_PATH"
LOG_ALL_TO_STDOUT_ENV_STR = "SMDEBUG_LOG_ALL_TO_STDOUT"
LOG_CONTEXT_ENV_STR = "SMDEBUG_LOG_CONTEXT"
LOG_DUPLICATION_THRESHOLD = 3

# The file in which what users should know of their job is reported to the service.
WARNINGS_PATH_ENV_STR = "SMDEBUG_WARNINGS_PATH"

INCOMPLETE_STEP_WAIT_WINDOW_KEY = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
MISSING_EVENT_FILE_RETRY_LIMIT_KEY = "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"
TRAINING_END_DELAY_REFRESH_KEY = "SMDEBUG_TRAINING_END_DELAY_REFRESH"
# Seconds for which a reader asks again while nothing answers at S3's endpoint; 0 by default.
S3_OUTAGE_WAIT_KEY = "SMDEBUG_S3_OUTAGE_WAIT"


def read_number(variable: str, default: float) -> float:
    """Return the number that a variable of the environment holds; the default where it is unset.

    Raises:
        SMDebugValueError: it holds something else, or a number without end.
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
    """Tell whether this process belongs to a SageMaker training job: TRAINING_JOB_NAME is set."""
    return TRAINING_JOB_NAME_ENV_STR in os.environ


def is_switched_on() -> bool:
    """Tell whether USE_SMDEBUG leaves smdebug on, as it does where it is not set.

    Raises:
        ValueError: it is neither on nor off.
    """
    try:
        return parse_switch(os.environ.get(USE_SMDEBUG_ENV_STR, "true"))
    except ValueError as error:
        raise ValueError(f"{USE_SMDEBUG_ENV_STR}: {error}") from error


def parse_switch(text: str) -> bool:
    """Return what an environment variable says: yes, true, on or 1, or their opposites; ValueError for the rest."""
    word = text.strip().lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"{text!r} is neither on nor off: write true or false.")
