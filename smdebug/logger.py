"""The `smdebug` logger, with a filter of repeated messages.

It writes to standard output, and repeats the same text at most three times.
"""

import logging
import os
import socket
import sys
from collections import Counter

from smdebug.environment import (
    LOG_ALL_TO_STDOUT_ENV_STR,
    LOG_CONTEXT_ENV_STR,
    LOG_DUPLICATION_THRESHOLD,
    LOG_LEVEL_ENV_STR,
    LOG_PATH_ENV_STR,
)

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


class DuplicateLogFilter(logging.Filter):
    """Limits how often the same text is logged: a failing callback fails at every step."""

    def __init__(self, repeat_threshold: int = LOG_DUPLICATION_THRESHOLD) -> None:
        super().__init__()
        self._threshold = repeat_threshold
        self._seen: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record's text may be logged again."""
        text = record.getMessage()
        self._seen[text] += 1
        return self._seen[text] <= self._threshold


class _BelowError(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR


def get_logger(name: str = "smdebug") -> logging.Logger:
    """Return the logger, configured from the environment on first use."""
    logger = logging.getLogger(name)
    if not any(isinstance(found, DuplicateLogFilter) for found in logger.filters):
        _set_up(logger)
    return logger


def _set_up(logger: logging.Logger) -> None:
    logger.addFilter(DuplicateLogFilter())
    logger.propagate = False
    level = os.environ.get(LOG_LEVEL_ENV_STR, "info").lower()
    if level == "off":
        logger.disabled = True
        return
    logger.setLevel(_LEVELS.get(level, logging.INFO))
    context = os.environ.get(LOG_CONTEXT_ENV_STR, f"{socket.gethostname()}:{os.getpid()}")
    context = context.replace("%", "%%")
    layout = logging.Formatter(f"[%(asctime)s {context} %(levelname)s %(filename)s:%(lineno)d] %(message)s")
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stdout)]
    if os.environ.get(LOG_ALL_TO_STDOUT_ENV_STR, "true").lower() == "false":
        handlers[0].addFilter(_BelowError())
        errors = logging.StreamHandler(sys.stderr)
        errors.setLevel(logging.ERROR)
        handlers.append(errors)
    path = os.environ.get(LOG_PATH_ENV_STR)
    problem = None
    if path:
        try:
            handlers.append(logging.FileHandler(path))
        except OSError as error:
            # The first message may come during a training, so the failure must not be raised.
            problem = error
    for handler in handlers:
        handler.setFormatter(layout)
        logger.addHandler(handler)
    if problem:
        logger.warning("%s: no log can be written to %s (%s).", LOG_PATH_ENV_STR, path, problem.strerror)
