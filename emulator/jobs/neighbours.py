"""The rooms that the jobs use, each as narrow as it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from emulator.moto_services.s3 import ObjectSummary


class Publisher(Protocol):
    """Delivers events to EventBridge."""

    def publish(self, event_id: str, region: str, event: dict[str, Any], on_delivered: Callable[[str], None]) -> None:
        """Queue ``event`` and return at once; ``on_delivered(event_id)`` follows when every target got it."""


class ObjectStore(Protocol):
    """S3; raises ``emulator.exceptions.ObjectStoreError``."""

    def head_bucket(self, bucket: str) -> bool:
        """Whether the bucket exists."""

    def put(self, bucket: str, key: str, data: bytes | Path) -> None:
        """Store an object."""

    def get(self, bucket: str, key: str) -> bytes:
        """Read an object."""

    def download(self, bucket: str, key: str, path: Path) -> None:
        """Write an object to a file."""

    def list(self, bucket: str, prefix: str) -> list[ObjectSummary]:
        """Objects whose keys begin with ``prefix``."""


class LogGroups(Protocol):
    """CloudWatch Logs."""

    def ensure_stream(self, group: str, stream: str) -> None:
        """Create what is missing."""

    def put(self, group: str, stream: str, lines: list[tuple[int, str]]) -> None:
        """Append lines: epoch milliseconds and text."""
