"""The profiler's timeline: its name is kept, the profiler is no part of this library."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError


class TimelineFileWriter:
    """Would write the profiler's trace events."""

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        """Raise SMDebugNotImplementedError: there is no profiler here."""
        raise SMDebugNotImplementedError("The profiler is no part of this library: no timeline can be written.")
