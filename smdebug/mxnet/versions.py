"""Which MXNet this code was written for."""

from __future__ import annotations

from functools import cache

import mxnet

from smdebug.core.logger import get_logger

_FIRST, _END = (1, 6), (2, 0)


def is_supported() -> bool:
    """Tell whether this MXNet names and calls its blocks as the releases from 1.6 on did; 2.0 no longer does.

    Says so once where it does not.
    """
    return _is_supported(mxnet.__version__)


@cache
def _is_supported(version: str) -> bool:
    supported = _FIRST <= tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _END
    if not supported:
        get_logger().warning(
            "MXNet %s is not supported (1.6 to 1.9 are): what is missing of its tensors is not saved.", version
        )
    return supported
