"""Versions of PyTorch that the hook was made for."""

from __future__ import annotations

import re

from smdebug.core.logger import get_logger

# The first with torch.compiler and with hooks of optimizers, by which a step is known to be over.
OLDEST = (2, 1)


def warn_of_version(version: str) -> None:
    """Say that a PyTorch is older than the oldest that has all that the hook looks at."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST:
        get_logger().warning(
            "PyTorch %s is older than %d.%d: steps may end late, and what this version does not show is not saved.",
            version,
            *OLDEST,
        )
