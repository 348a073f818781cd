"""Errors that the author of a training job can fix."""

from __future__ import annotations

import re

# Time and source line before what XGBoost's library says; a stack trace follows it.
_CAUSE_PLACE = re.compile(r"^[- ]*\[[^]]*\|[^]]*\]:?")
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")


class JobError(Exception):
    """The job cannot be trained as it is described; the text says what to change."""


class NoDataError(JobError):
    """There is nothing to read; of several hosts, one without data is left out of the training."""


def summarise_xgboost_error(error: Exception) -> str:
    """What XGBoost has to say, in one line."""
    return _PLACE.sub("", str(error).strip().partition("\n")[0])


def summarise_connection_error(error: Exception) -> str:
    """What XGBoost has to say of its connections, whose causes stand below each other."""
    lines = str(error).partition("Stack trace")[0].splitlines()
    texts = [_CAUSE_PLACE.sub("", line).strip(" :") for line in lines]
    return ": ".join(text for text in texts if text)
