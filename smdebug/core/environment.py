"""Numbers that environment variables set."""

from __future__ import annotations

import math
import os

from smdebug.exceptions import SMDebugValueError


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
