"""Warnings for the users of a job, in its log and in its report file.

SMDEBUG_WARNINGS_PATH names the report file. The emulator's containers set it; elsewhere it is unset, and no file is
written. Each line of the file is a JSON object with Code and Text.
"""

import json
import logging
import os
import threading
from pathlib import Path

from smdebug.environment import WARNINGS_PATH_ENV_STR
from smdebug.logger import get_logger

HOOK_SAVED_NOTHING = "HookSavedNothing"
HOOK_PARAMETER_IGNORED = "HookParameterIgnored"
TENSORS_DROPPED = "TensorsDropped"
RULE_HAD_LITTLE_TO_JUDGE = "RuleHadLittleToJudge"
RULE_WITHOUT_COLLECTION = "RuleWithoutCollection"
REQUIREMENTS_NOT_INSTALLED = "RequirementsNotInstalled"

# Limit for one process: a training may lose each of a thousand tensors.
_MOST_LINES = 100
# The service does not read more.
_MOST_BYTES = 1 << 16
_MOST_CHARACTERS = 1000

_written: set[tuple[str, str]] = set()
_lock = threading.Lock()


def warn_user(
    code: str, message: str, *arguments: object, level: int = logging.WARNING, exc_info: bool = False
) -> None:
    """Log a warning and report it to the service; a report that cannot be written is logged.

    Args:
        code: one of the codes of this module.
        message: message with placeholders, as in logging.
        arguments: values for the placeholders.
        level: level of the message in the log.
        exc_info: whether the log includes the traceback.
    """
    get_logger().log(level, message, *arguments, exc_info=exc_info, stacklevel=2)
    path = os.environ.get(WARNINGS_PATH_ENV_STR)
    if not path:
        return
    text = (message % arguments if arguments else message)[:_MOST_CHARACTERS]
    with _lock:
        if (code, text) in _written or len(_written) >= _MOST_LINES:
            return
        _written.add((code, text))
    line = f"{json.dumps({'Code': code, 'Text': text})}\n".encode()
    try:
        # One system call, because the processes of a distributed training share the file.
        with Path(path).open("ab", buffering=0) as file:
            if file.tell() + len(line) <= _MOST_BYTES:
                file.write(line)
    except OSError as error:
        # The training continues without the report.
        get_logger().info("The warning was not reported to the service: %s", error)
