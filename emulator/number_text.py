"""Numbers that requests, hyperparameters and filters have as text."""

import math
import re

_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def read_number(text: object) -> float | None:
    """Read a decimal number; None if the text is none, or if the number is too large for a float.

    >>> [read_number(text) for text in ("2", " -.5e1 ", "2.3.0", "1_000", "inf", "nan", "1e400", None)]
    [2.0, -5.0, None, None, None, None, None, None]
    """
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text.strip()):
        return None
    number = float(text)
    return number if math.isfinite(number) else None
