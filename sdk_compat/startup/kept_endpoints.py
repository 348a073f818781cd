"""AWS's endpoints, which the SageMaker SDK reads only once.

To name an image or a partition, the SDK reads botocore's file of all endpoints: four times for an estimator, each of
which takes a tenth of a second. In the modules that read it, the function keeps what it has read.

This module imports only modules that Python's start-up has already imported, and supports the same Python versions as
the SDK.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

RESOLVING_MODULES = ("sagemaker.utils", "sagemaker.core.common_utils")
"""The first module is of version 2 of the SDK, the other one of version 3."""
_FUNCTION = "_botocore_resolver"
# Folders of files that botocore prefers to its own.
_FOLDERS = "AWS_DATA_PATH"


def keep_endpoints(module: Any) -> None:
    """Let the module's function that reads the endpoints keep them, for each value of AWS_DATA_PATH."""
    read = getattr(module, _FUNCTION, None)
    if read is not None:
        setattr(module, _FUNCTION, _keep(read))


def _keep(read: Any) -> Any:
    from functools import wraps

    kept: dict[str | None, Any] = {}

    @wraps(read)
    def read_once() -> Any:
        folders = os.environ.get(_FOLDERS)
        if folders not in kept:
            kept[folders] = read()
        return kept[folders]

    return read_once
