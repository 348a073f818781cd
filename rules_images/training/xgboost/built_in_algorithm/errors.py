"""Errors that the author of a training job can fix."""

import re

# Time and source line before a message of XGBoost's library. A stack trace follows the message.
_CAUSE_PLACE = re.compile(r"^[- ]*\[[^]]*\|[^]]*\]:?")
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")


class JobError(Exception):
    """The job cannot be trained as requested; the message says what to change."""


class NoDataError(JobError):
    """A channel has no data. In a job with several hosts, a host without data is left out of the training."""


def summarise_xgboost_error(error: Exception) -> str:
    """Return the message of an XGBoost error in one line."""
    return _PLACE.sub("", str(error).strip().partition("\n")[0])


def summarise_connection_error(error: Exception) -> str:
    """Return the message of an XGBoost connection error, which lists its causes on separate lines, in one line."""
    lines = str(error).partition("Stack trace")[0].splitlines()
    texts = [_CAUSE_PLACE.sub("", line).strip(" :") for line in lines]
    return ": ".join(text for text in texts if text)
