"""What the author of a training job can put right."""

from __future__ import annotations

import re

# Time and source line before what XGBoost's library says; a stack trace follows it.
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")


class JobError(Exception):
    """The job cannot be trained as it is described; the text says what to change."""


def summarise_xgboost_error(error: Exception) -> str:
    """What XGBoost has to say, in one line."""
    return _PLACE.sub("", str(error).strip().partition("\n")[0])
