"""What every run of a job works with, in one bundle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from container_runtime.runtime import ContainerRuntime
    from emulator.jobs.records.ledger import Ledger
    from emulator.jobs.runs.logs import LogWriter
    from emulator.moto_services.s3 import ObjectStore
    from emulator.settings import Settings


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What every run of a job works with.

    Attributes:
        ledger: stores changes, then announces them.
        runtime: the container back end.
        object_store_for: S3 of a region.
        log_writer: CloudWatch Logs.
        settings: the emulator's.
        endpoint_url: where a container reaches the emulator.
    """

    ledger: Ledger
    runtime: ContainerRuntime
    object_store_for: Callable[[str], ObjectStore]
    log_writer: LogWriter
    settings: Settings
    endpoint_url: str
