"""What AWS's builds of the frameworks call on a hook for the profiler, which is no part of this library."""

from __future__ import annotations

from typing import Any


class NoProfiler:
    """Takes the profiler's calls and does nothing with them, so that code which makes them runs."""

    def record_trace_events(self, *args: Any, **kwargs: Any) -> None:
        """Record no trace event."""

    def should_save_dataloader_metrics(self, metrics_name: str) -> bool:  # noqa: ARG002 - the framework's call
        """Answer that a data loader's metric is not wanted: False."""
        return False

    def profiling_start_batch(self, *args: Any, **kwargs: Any) -> None:
        """Begin no profile."""

    def profiling_end_batch(self, *args: Any, **kwargs: Any) -> None:
        """End no profile."""

    def profiling_end(self) -> None:
        """End no profile."""
