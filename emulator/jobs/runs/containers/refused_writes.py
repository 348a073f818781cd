"""Hints for jobs that failed by refused writes or an unexpected user."""

import re
from collections.abc import Sequence

from container_runtime.runtime import ContainerRuntime

_REFUSAL = re.compile(
    r"read-only file ?system|permission denied|operation not permitted|\bE(ROFS|ACCES|PERM)\b", re.IGNORECASE
)
_HINT = (
    "smdebug-emulator: Something was refused to the container. It may write to /opt/ml, /tmp and its home only, and "
    "is not root, as it would be on AWS. If the image needs more, start the emulator with --writable-root, or as root "
    "with --container-user root."
)


def find_hint(runtime: ContainerRuntime, last_lines: Sequence[str]) -> str | None:
    """Return a hint for the log of a failed container; None if its last lines do not contain a permission error.

    There is no hint for local processes, because they have all permissions of the emulator's user.
    """
    refused = runtime.name != "process" and any(map(_REFUSAL.search, last_lines))
    return _HINT if refused else None
