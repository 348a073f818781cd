"""Which MXNet this code was written for."""

from __future__ import annotations

import mxnet

from smdebug.capture.framework_versions import check_version


def is_supported() -> bool:
    """Tell whether this MXNet names and calls its blocks as the releases from 1.6 on did; 2.0 no longer does."""
    return check_version(
        "MXNet", mxnet.__version__, first=(1, 6), end=(2, 0), missing="what it names or calls in another way"
    )
